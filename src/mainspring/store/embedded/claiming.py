"""Taking a directory as our data directory, or refusing it before anything in it is touched."""

from __future__ import annotations

import os
from pathlib import Path

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded.accounts import Account, account_for
from mainspring.store.embedded.commands import can_enter
from mainspring.store.embedded.directory import DataDirectory, refusals_explained

MARKER_TEXT = "The embedded PostgreSQL of Mainspring keeps its data here. Change it only through Mainspring.\n"
EVERY_VOLUME_HAS = frozenset({"lost+found"})


def claim_directory(path: Path) -> DataDirectory:
    """The directory, made if missing and marked as ours. Links are resolved: one place, one name."""
    real = Path(os.path.realpath(path))
    directory = DataDirectory(path=real, account=account_for(real / "postgresql", real))
    with refusals_explained(real):
        _refuse_foreign(directory)
        _refuse_wrong_owner(directory)
        _refuse_unreachable(directory)
        _make(directory)
    return directory


def _refuse_foreign(directory: DataDirectory) -> None:
    """The marker is the first thing we ever write, so it is looked for after what else there is."""
    if not directory.path.exists():
        return
    strange = set(os.listdir(directory.path)) - EVERY_VOLUME_HAS
    if strange and not directory.marker.exists():
        raise EmbeddedServerError(
            f"The directory {directory.path} is not empty and was not made by Mainspring (it holds {min(strange)!r}).",
            code="embedded-data-not-ours",
            hint="Nothing was changed. Choose an empty or new directory, with MAINSPRING_DATA_DIR.",
            path=str(directory.path),
        )


def _refuse_wrong_owner(directory: DataDirectory) -> None:
    data, account = directory.postgresql, directory.account
    if data.exists() and data.stat().st_uid != account.uid:
        raise EmbeddedServerError(
            f"The data in {data} belongs to uid {data.stat().st_uid}, but PostgreSQL would run as {account.name}.",
            code="embedded-data-wrong-owner",
            hint=f"Run Mainspring as the owner, or give the data back: chown -R {account.uid} {data}",
            path=str(data),
        )


def _refuse_unreachable(directory: DataDirectory) -> None:
    account = directory.account
    if not account.switches or (blocked := _first_blocked(directory.path, account)) is None:
        return
    raise EmbeddedServerError(
        f"PostgreSQL does not run as root, and {account.name}, whom it would run as, cannot enter {blocked}.",
        code="embedded-directory-unreachable",
        hint=f"Choose a data directory outside {blocked}, such as /var/lib/mainspring/data,"
        " with MAINSPRING_DATA_DIR, or run Mainspring as an ordinary user.",
        path=str(directory.path),
        blocked=str(blocked),
    )


def _first_blocked(path: Path, account: Account) -> Path | None:
    """The outermost existing folder on the way that the account cannot enter."""
    ways = [folder for folder in (path, *path.parents) if folder.is_dir()]
    if can_enter(account, ways[0]):
        return None
    return next(folder for folder in reversed(ways) if not can_enter(account, folder))


def _make(directory: DataDirectory) -> None:
    missing = [folder for folder in (directory.path, *directory.path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o711 if directory.account.switches else 0o700, exist_ok=True)
        if directory.account.switches:
            folder.chmod(0o711)  # our own folder: a strict umask of root must not lock the server out of it
    if not directory.marker.exists():
        with os.fdopen(directory.open_file(directory.marker.name), "w") as marker:
            marker.write(MARKER_TEXT)

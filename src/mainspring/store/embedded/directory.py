"""The data directory: where it is by default, what lies in it, how files are made in it, and where the server listens.

A directory is taken as ours, or refused before anything in it is touched.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded.accounts import Account, account_for, can_enter

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKER_TEXT = "The embedded PostgreSQL of Mainspring keeps its data here. Change it only through Mainspring.\n"
EVERY_VOLUME_HAS = frozenset({"lost+found"})
# sun_path holds 108 bytes on Linux, 104 elsewhere, one of them NUL; the longest name is .s.PGSQL.65535.lock.
LONGEST_FOLDER = 103 - len("/.s.PGSQL.65535.lock")
# Commas separate hosts in a connection string; other odd characters trip one driver or another.
PLAIN = re.compile(r"[A-Za-z0-9/._-]+")
SHORT_BASE = Path("/tmp")  # not TMPDIR: it differs between users of one server and may be long

DIRECTORY_VARIABLE = "MAINSPRING_DATA_DIR"


@dataclass(frozen=True, kw_only=True)
class DataDirectory:
    """A directory that is ours, and the account its server runs under."""

    path: Path
    account: Account

    @property
    def marker(self) -> Path:
        return self.path / "mainspring.marker"

    @property
    def postgresql(self) -> Path:
        return self.path / "postgresql"

    @property
    def staging(self) -> Path:
        return self.path / "staging"

    @property
    def socket(self) -> Path:
        return self.path / "socket"

    @property
    def hba_file(self) -> Path:
        return self.path / "pg_hba.conf"

    @property
    def password(self) -> Path:
        return self.path / "password"

    @property
    def started(self) -> Path:
        return self.path / "started.json"

    @property
    def start_log(self) -> Path:
        return self.path / "start.log"

    def open_file(self, name: str, flags: int = 0) -> int:
        """Open or make a private file. Never follows a link that the server's account may have planted."""
        with refusals_explained(self.path):
            descriptor = os.open(self.path / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | flags, 0o600)
            self._hand_over(descriptor)
        return descriptor

    def write_file(self, name: str, text: str, *, mode: int = 0o600) -> None:
        """Replace a file as a whole, so that a kill never leaves half of it."""
        draft = f"{name}.draft"
        with os.fdopen(self.open_file(draft, os.O_TRUNC), "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), mode)
        os.replace(self.path / draft, self.path / name)

    def make_server_folder(self, folder: Path) -> None:
        """Make sure of a folder that only the server's account may enter."""
        with refusals_explained(folder):
            folder.mkdir(mode=0o700, exist_ok=True)
            if self.account.switches:
                _give(folder, self.account)

    def _hand_over(self, descriptor: int) -> None:
        """What root makes in someone's directory is theirs; a file with a second name may be another's."""
        owner, status = self.path.stat(), os.fstat(descriptor)
        if os.geteuid() == 0 and owner.st_uid != status.st_uid and status.st_nlink == 1:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)


def _give(folder: Path, account: Account) -> None:
    """Through a descriptor, which cannot be swapped for something else between the look and the change."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid == 0:  # we made it just now, or were killed before this line
            os.fchown(descriptor, account.uid, account.gid)
    finally:
        os.close(descriptor)


@contextmanager
def refusals_explained(path: Path) -> Iterator[None]:
    """Turn the system's refusals to make or open something into our error."""
    try:
        yield
    except OSError as error:
        raise EmbeddedServerError(
            f"The embedded PostgreSQL cannot write to {path}: {error.strerror or error}.",
            code="embedded-directory-not-writable",
            hint="Choose a directory this user may write to, with MAINSPRING_DATA_DIR.",
            path=str(path),
        ) from error


def default_data_directory() -> Path:
    """`MAINSPRING_DATA_DIR`, else the system's place for such data (as root) or the user's."""
    if chosen := os.environ.get(DIRECTORY_VARIABLE):
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/var/lib/mainspring/data")
    shared = Path(os.environ.get("XDG_DATA_HOME", ""))
    base = shared if shared.is_absolute() else Path.home() / ".local" / "share"
    return base / "mainspring" / "data"


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


def socket_directory_of(directory: DataDirectory) -> Path:
    """Inside the data directory, where nobody squats it or cleans it away; else one of its own in /tmp."""
    inside = str(directory.socket)
    if len(inside) <= LONGEST_FOLDER and PLAIN.fullmatch(inside):
        return directory.socket
    digest = hashlib.sha256(os.fsencode(directory.path)).hexdigest()[:16]
    return SHORT_BASE / f"mainspring-{directory.account.uid}-{digest}"


def prepare_socket_directory(directory: DataDirectory) -> Path:
    """Make the folder if needed, check that it is really ours, and clear what a dead server left in it."""
    folder = socket_directory_of(directory)
    directory.make_server_folder(folder)
    _refuse_squatted(folder, directory.account.uid)
    for leftover in folder.glob(".s.PGSQL.*"):
        # Its lock names a process id that may be someone else's by now; PostgreSQL would refuse to start.
        leftover.unlink(missing_ok=True)
    return folder


def remove_short_socket_directory(directory: DataDirectory) -> None:
    """Leave nothing behind in /tmp once the server has stopped."""
    folder = socket_directory_of(directory)
    if folder != directory.socket:
        with suppress(OSError):
            folder.rmdir()


def _refuse_squatted(folder: Path, uid: int) -> None:
    status = folder.lstat()
    if stat.S_ISDIR(status.st_mode) and status.st_uid == uid and not status.st_mode & 0o077:
        return
    raise EmbeddedServerError(
        f"The socket folder {folder} is not a private folder of uid {uid}; someone else may have made it.",
        code="embedded-socket-unsafe",
        hint="Find out who made it, remove it, and start again.",
        path=str(folder),
    )

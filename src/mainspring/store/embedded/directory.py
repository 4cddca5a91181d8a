"""The data directory: where it is by default, what lies in it, and how files are made in it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mainspring.errors import EmbeddedServerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mainspring.store.embedded.accounts import Account


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
    if chosen := os.environ.get("MAINSPRING_DATA_DIR"):
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/var/lib/mainspring/data")
    shared = Path(os.environ.get("XDG_DATA_HOME", ""))
    base = shared if shared.is_absolute() else Path.home() / ".local" / "share"
    return base / "mainspring" / "data"

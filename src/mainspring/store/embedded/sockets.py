"""Where the server listens: a folder only its account may enter, with a path short enough for a socket."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mainspring.errors import EmbeddedServerError

if TYPE_CHECKING:
    from mainspring.store.embedded.directory import DataDirectory

# sun_path holds 108 bytes on Linux, 104 elsewhere, one of them NUL; the longest name is .s.PGSQL.65535.lock.
LONGEST_FOLDER = 103 - len("/.s.PGSQL.65535.lock")
# Commas separate hosts in a connection string; other odd characters trip one driver or another.
PLAIN = re.compile(r"[A-Za-z0-9/._-]+")
SHORT_BASE = Path("/tmp")  # not TMPDIR: it differs between users of one server and may be long


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

"""Where the data of a test run goes: nobody needs it afterwards, so memory will do if there is plenty.

Each process of a run shares a lock in its folder for as long as it lives. A run that was killed leaves a server and its
data behind, and a lock that nobody holds: the next run ends the one and removes the other.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import closing, suppress
from pathlib import Path

from mainspring.store.embedded.locks import FileLock
from mainspring.store.embedded.postmaster import end_at_once

MEMORY = Path("/dev/shm")
PLENTY = 2 * 1024**3
PREFIX = "mainspring-tests-"
LOCK = "users.lock"


def scratch_root() -> Path:
    """Memory, where a fresh database costs a fraction of what it costs on a disk; else where temporary files go.

    Whoever sets TMPDIR has decided.
    """
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(MEMORY).free > PLENTY:
        return MEMORY
    return Path(tempfile.gettempdir())


def claim_scratch(directory: Path) -> FileLock:
    """Use the folder of a run, making it if need be; nobody sweeps it before the lock is closed or its process ends."""
    while True:
        directory.mkdir(mode=0o755, exist_ok=True)
        lock = FileLock(os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o600))
        lock.share()
        if _is_in_place(lock, directory):
            return lock
        lock.close()  # somebody swept between our two steps


def sweep_scratch(root: Path) -> None:
    """End the servers of runs that were killed, and remove their folders. Never those of a run that lives."""
    for directory in root.glob(f"{PREFIX}*"):
        with suppress(OSError):  # somebody else sweeps too, or the folder is not ours
            _sweep(directory)


def _sweep(directory: Path) -> None:
    if directory.is_symlink() or directory.stat().st_uid != os.geteuid():
        return
    with closing(FileLock(os.open(directory / LOCK, os.O_RDWR | os.O_NOFOLLOW))) as lock:
        if lock.try_exclusive() and _is_in_place(lock, directory):
            for file in directory.rglob("postmaster.pid"):
                end_at_once(file.parent)
            shutil.rmtree(directory)


def _is_in_place(lock: FileLock, directory: Path) -> bool:
    """Whether the lock we hold is the one that others would find."""
    try:
        return os.path.samestat(os.fstat(lock.descriptor), os.stat(directory / LOCK))
    except FileNotFoundError:
        return False

"""File locks that survive nobody, and waiting for other processes.

The kernel frees a lock when its last holder is gone, even by kill -9. `flock` and not `fcntl` locks: it belongs to the
open file, so two handles in one process count as two users, and a descriptor handed to PostgreSQL keeps the lock for as
long as PostgreSQL lives. Only spans of time are measured here; no instant is ever read or stored.
"""

from __future__ import annotations

import fcntl
import os
import weakref
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING

from mainspring.errors import EmbeddedServerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_open_locks: weakref.WeakSet[FileLock] = weakref.WeakSet()
FIRST_PAUSE = 0.005
LONGEST_PAUSE = 0.05


class FileLock:
    """One open lock file. Takes over the descriptor it is given."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        _open_locks.add(self)

    def try_exclusive(self) -> bool:
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def share(self) -> None:
        fcntl.flock(self.descriptor, fcntl.LOCK_SH)

    def unlock(self) -> None:
        """Free the lock for everyone: a forked child with a copy of the descriptor must not keep it alive."""
        if self.descriptor >= 0:
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of our copy. The lock stays with whoever inherited another one."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            with suppress(OSError):
                os.close(descriptor)

    @contextmanager
    def held_exclusively(self, *, seconds: float) -> Iterator[None]:
        """Wait for the lock by asking: a blocking `flock` could wait forever for a stopped process."""
        if not wait_until(self.try_exclusive, seconds=seconds):
            raise EmbeddedServerError(
                f"Another process has been starting or stopping the embedded PostgreSQL for {seconds:.0f} s.",
                code="embedded-server-busy",
                hint="Look for a stopped or hanging process that uses this data directory and end it.",
            )
        try:
            yield
        finally:
            self.unlock()


def _close_in_child() -> None:
    # A forked child is no user of its own. Closing its copies leaves the parent's locks as they are.
    for lock in list(_open_locks):
        lock.close()


os.register_at_fork(after_in_child=_close_in_child)


def wait_until(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Ask until the condition holds, ever more slowly; False when the time is up."""
    give_up_at = monotonic() + seconds
    pause = FIRST_PAUSE
    while not condition():
        if monotonic() >= give_up_at:
            return False
        sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)
    return True

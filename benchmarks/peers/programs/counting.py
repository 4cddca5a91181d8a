"""How many jobs this process has executed, where the benchmark sees it: eight bytes in a file of its own.

Every Python peer's handler calls `count_one` and nothing else, so that counting costs them all the same.
"""

from __future__ import annotations

import mmap
import os
import threading
from pathlib import Path

FOLDER_VARIABLE = "PEERS_COUNTS"

_one_thread = threading.Lock()  # several peers execute in threads, and += is two steps
_count: memoryview | None = None


def count_one() -> None:
    global _count
    with _one_thread:
        if _count is None:  # only now: many peers fork after they have imported the handler
            _count = _open_count()
        _count[0] += 1


def _open_count() -> memoryview:
    path = Path(os.environ[FOLDER_VARIABLE]) / str(os.getpid())
    path.write_bytes(bytes(8))
    with path.open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")

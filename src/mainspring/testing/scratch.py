"""Where the data of a test run goes: nobody needs it afterwards, so memory will do if there is plenty."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
PLENTY = 2 * 1024**3


def scratch_root() -> Path:
    """Memory, where a fresh database costs a fraction of what it costs on a disk; else where temporary files go.

    Whoever sets TMPDIR has decided.
    """
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(MEMORY).free > PLENTY:
        return MEMORY
    return Path(tempfile.gettempdir())

"""Spread: a delay inside a window that the job's id and the instant decide, so that a herd does not start at once."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

_MILLISECOND = timedelta(milliseconds=1)


def delay(job: str, nominal_at: datetime, window: timedelta) -> timedelta:
    """From nothing to just below the window, in whole milliseconds; always the same for the same job and instant."""
    seed = f"{nominal_at.isoformat()}\0{job}".encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.blake2b(seed, digest_size=8).digest())
    return (number * (window // _MILLISECOND) >> 64) * _MILLISECOND

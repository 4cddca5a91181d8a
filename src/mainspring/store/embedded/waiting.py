"""Waiting for other processes. Only spans are measured here; no instant is ever read or stored."""

from __future__ import annotations

from time import monotonic, sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_PAUSE = 0.005
LONGEST_PAUSE = 0.05


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

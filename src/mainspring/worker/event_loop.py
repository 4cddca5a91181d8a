"""The event loop of worker processes: uvloop's, which is the faster one, where it is installed; else asyncio's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

try:
    from uvloop import new_event_loop
except ModuleNotFoundError:
    from asyncio import new_event_loop  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)

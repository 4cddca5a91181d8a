"""Calls that block have no place in an event loop: everything else there would stand still for as long as they take."""

from __future__ import annotations

import asyncio

from mainspring.errors import InvalidInput


def refuse_in_event_loop(call: str, instead: str) -> None:
    """Refuse a blocking call in code that an event loop runs; `instead` is its awaitable twin."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise InvalidInput(
        f"{call} was called inside a running event loop, which it would block.",
        code="blocking-in-event-loop",
        hint=f"In async code: {instead}. From a thread of its own: await asyncio.to_thread(…).",
        call=call,
    )

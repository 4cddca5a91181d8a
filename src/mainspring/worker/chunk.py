"""How a chunk handler is called: for several runs at once, or for a single one.

For a single one it is called where runs do not share a call: in a process of its own, after a worker has crashed with
the run in it, and inline in tests.
"""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

from mainspring.model.chunk import answers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mainspring.model.context import Context
    from mainspring.worker.registry import Handler


class Chunk(NamedTuple):
    """The function that takes lists, how many runs it gets at most, and how many seconds a run waits for others."""

    function: Callable[..., Any]
    size: int
    wait: float


def lists_for(handler: Handler, items: Sequence[Any], contexts: Sequence[Context]) -> tuple[list[Any], ...]:
    """What it is called with, besides resources."""
    return (list(contexts), list(items)) if handler.arguments.wants_context else (list(items),)


def for_one_run(job: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The handler as one that takes no lists: an item, and before it a context if it wants contexts."""

    @wraps(function)
    async def call_async(*each: Any, **resources: Any) -> Any:
        return _answer(job, await function(*([one] for one in each), **resources))

    @wraps(function)
    def call(*each: Any, **resources: Any) -> Any:
        return _answer(job, function(*([one] for one in each), **resources))

    return call_async if inspect.iscoroutinefunction(function) else call


def _answer(job: str, result: Any) -> Any:
    (answer,) = answers_of(job, result, 1)
    if isinstance(answer, BaseException):
        raise answer
    return answer

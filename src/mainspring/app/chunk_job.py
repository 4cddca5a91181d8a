"""A job whose handler is called for several runs at once, as its author and type checkers see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, overload

from mainspring.app.job import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from mainspring.app.handle import Handle
    from mainspring.control.schedule_texts import CalendarsGiven
    from mainspring.model.backlog import Backlog
    from mainspring.model.breaker import Breaker
    from mainspring.model.chain import JobsBefore
    from mainspring.model.concurrency import Limit
    from mainspring.model.context import Context
    from mainspring.model.dependency import Condition
    from mainspring.model.policy import RetryPolicy
    from mainspring.model.unique import Debounce, Unique
    from mainspring.schedule.deciding import CatchUp
    from mainspring.schedule.schedule import Schedule

T = TypeVar("T")
R = TypeVar("R")


class JobKeywords(TypedDict, total=False):
    """The other options of such a job, for type checkers: those of `app.job`."""

    name: str | None
    queue: str
    priority: int
    retry: RetryPolicy
    max_age: timedelta | float | None
    on_disconnect: str
    labels: Iterable[str]
    timeout: timedelta | float | None
    run_timeout: timedelta | float | None
    start_within: timedelta | float | None
    limit: Limit | Sequence[Limit] | None
    unique: Unique | None
    debounce: Debounce | None
    after: JobsBefore | None
    on: Condition | str | None
    breaker: Breaker | None
    backlog: Backlog | Sequence[Backlog] | None
    capture_logs: str | None
    schedule: str | Schedule | None
    zone: str
    spread: timedelta | None
    starts_at: datetime | None
    ends_at: datetime | None
    max_runs: int | None
    calendars: CalendarsGiven
    catch_up: CatchUp | str
    overlap: str
    pause_after_failures: int | None


class ChunkJob(Job[..., R], Generic[T, R]):
    """A job with `chunk=…`: its handler gets lists of items, and each of its runs is submitted with one of them.

    Calling it calls the handler, with a list.
    """

    @overload
    async def submit(self, item: T, /) -> Handle[R]: ...
    @overload
    async def submit(self, **fields: Any) -> Handle[R]: ...
    async def submit(self, *items: Any, **fields: Any) -> Handle[R]:
        """Accept one run, for an item or for its fields by name; when this returns, it is durable."""
        return await super().submit(*items, **fields)

    @overload
    def submit_sync(self, item: T, /) -> Handle[R]: ...
    @overload
    def submit_sync(self, **fields: Any) -> Handle[R]: ...
    def submit_sync(self, *items: Any, **fields: Any) -> Handle[R]:
        """`submit` for code that is not async."""
        return super().submit_sync(*items, **fields)

    async def submit_many(self, calls: Iterable[T | Mapping[str, Any]]) -> list[Handle[R]]:
        """Accept one run for each item, or mapping of its fields: all of them, or none."""
        return await super().submit_many(calls)  # type: ignore[arg-type]  # its arguments know what an item is

    def submit_many_sync(self, calls: Iterable[T | Mapping[str, Any]]) -> list[Handle[R]]:
        """`submit_many` for code that is not async."""
        return super().submit_many_sync(calls)  # type: ignore[arg-type]


class ChunkJobDecorator:
    """What `app.job(chunk=…)` returns, for type checkers."""

    @overload
    def __call__(
        self, function: Callable[[list[Context], list[T]], Coroutine[Any, Any, None]], /
    ) -> ChunkJob[T, None]: ...
    @overload
    def __call__(self, function: Callable[[list[T]], Coroutine[Any, Any, None]], /) -> ChunkJob[T, None]: ...
    @overload
    def __call__(
        self, function: Callable[[list[Context], list[T]], Coroutine[Any, Any, Sequence[R | BaseException]]], /
    ) -> ChunkJob[T, R]: ...
    @overload
    def __call__(
        self, function: Callable[[list[T]], Coroutine[Any, Any, Sequence[R | BaseException]]], /
    ) -> ChunkJob[T, R]: ...
    @overload
    def __call__(self, function: Callable[[list[Context], list[T]], None], /) -> ChunkJob[T, None]: ...
    @overload
    def __call__(self, function: Callable[[list[T]], None], /) -> ChunkJob[T, None]: ...
    @overload
    def __call__(
        self, function: Callable[[list[Context], list[T]], Sequence[R | BaseException]], /
    ) -> ChunkJob[T, R]: ...
    @overload
    def __call__(self, function: Callable[[list[T]], Sequence[R | BaseException]], /) -> ChunkJob[T, R]: ...
    def __call__(self, function: Any, /) -> Any:
        raise TypeError("a job decorator is a plain function")

"""One look at all the runs that may be in a list: in their places and in history, over a bounded number of rows."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mainspring.errors import FilterTooWide
from mainspring.model.job import EARLIEST, LATEST
from mainspring.model.lifecycle import ENDS, State
from mainspring.model.listing import LAST_ID, Position, first_id_at, position_at, position_of_id
from mainspring.store import jobs, lists

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime

    from mainspring.model.filter import RunFilter
    from mainspring.store.connection import Connection, Record

ROWS_PER_SCAN = 10_000
ROWS_IN_ALL = 200_000
MOST_PAIRS = 20_000
# History is read from its latest days back: most lists end there, and asking all of its partitions takes longer.
WINDOWS = (timedelta(days=2), timedelta(days=30), LATEST - EARLIEST)


class Names(NamedTuple):
    """What ids stand for."""

    jobs: dict[int, str]
    queues: dict[int, str]


class Found(NamedTuple):
    """One row of a list, and where it stands."""

    position: Position
    state: State
    row: Record
    is_match: bool
    is_last: bool
    error: str | None = None


def scope_of(wanted: RunFilter, names: Names, *, tenant_id: int, lanes: int, count: int) -> lists.Scope:
    """What to ask for, so that `count` runs are found; refuses what would ask for too much."""
    job_ids = jobs.ids_of(names.jobs, wanted.jobs)
    line_ids = jobs.lines_of_queues(names.queues, wanted.queues)
    is_by_pair = wanted.is_narrow or wanted.reads_history
    pairs = [(job, line) for job in job_ids for line in line_ids] if is_by_pair else []
    if len(pairs) > MOST_PAIRS:
        raise _too_wide(wanted, f"it would ask for {len(pairs):,} pairs of job and queue")
    return lists.Scope(
        tenant_id=tenant_id,
        lanes=list(range(lanes)),
        jobs=[job for job, _ in pairs],
        lines=[line for _, line in pairs],
        is_narrow=wanted.is_narrow,
        is_of_jobs=bool(wanted.jobs),
        tags=list(wanted.tags) or None,
        error=wanted.error,
        most=count,
        bound=max(count + 1, min(ROWS_PER_SCAN, ROWS_IN_ALL // max(1, len(pairs)))),
    )


class Looking:
    """One look at all that may be in a list."""

    def __init__(
        self,
        connection: Connection,
        wanted: RunFilter,
        scope: lists.Scope,
        start: Position | None,
        now: datetime,
        *,
        is_spread: bool,
    ) -> None:
        self._connection = connection
        self._wanted = wanted
        self._scope = scope
        self._start = start
        self._now = now
        self._is_spread = is_spread

    # ── in a place ──────────────────────────────────────────────────────────────────────────────────────────

    async def placed(self, start: Position | None) -> list[Found]:
        states = self._wanted.wanted_states - ENDS
        until = LAST_ID if self._wanted.until is None else first_id_at(self._wanted.until)
        before = until if start is None else min(until, start.before_id)
        since = first_id_at(self._wanted.since or EARLIEST)
        rows: list[Record] = []
        if states - {State.RUNNING}:
            rows += await lists.placed(self._connection, self._scope, states, before, since)
        if State.RUNNING in states:
            rows += await lists.running(self._connection, self._scope, before, since)
        return [_found(row, position_of_id(row["id"])) for row in rows]

    # ── in history ──────────────────────────────────────────────────────────────────────────────────────────

    async def ended(self) -> list[Found]:
        ends = self._wanted.ends
        if not ends:
            return []
        found: list[Found] = []
        for window in self._windows(self._start):
            for scope in self._scopes():
                rows = await lists.ended(self._connection, scope, ends, window)
                found += [_found(row, position_at(row["recorded_at"], row["id"])) for row in rows]
            if len(found) >= self._scope.most:
                break
        return found

    async def failures(self) -> list[Found]:
        """Runs with a failed attempt; where they are now is looked up, so a state is a filter over what was found."""

        async def now(some: list[Found]) -> list[Found]:
            states = await lists.states_of(
                self._connection, [each.row["id"] for each in some], tenant_id=self._scope.tenant_id
            )
            found = [each._replace(state=states.get(each.row["id"], each.state)) for each in some]
            return [each for each in found if each.state in self._wanted.wanted_states]

        return await self._sifted(self._some_failures, now)

    async def dead(self) -> list[Found]:
        """Dead letters by what killed them."""

        async def fitting(some: list[Found]) -> list[Found]:
            found = await with_errors(self._connection, some, tenant_id=self._scope.tenant_id)
            return [each for each in found if _is_about(each.error, self._wanted.error)]

        async def more(start: Position | None) -> list[Found]:
            return self.merged(await self.placed(start))

        return await self._sifted(more, fitting)

    async def _sifted(
        self,
        more: Callable[[Position | None], Awaitable[list[Found]]],
        sift: Callable[[list[Found]], Awaitable[list[Found]]],
    ) -> list[Found]:
        """Look at so many again and again until enough of them fit."""
        found: list[Found] = []
        looked_at, start = 0, self._start
        while looked_at < ROWS_PER_SCAN:
            some = await more(start)
            found += await sift(some)
            if len(some) < self._scope.most or len(found) >= self._scope.most:
                return found[: self._scope.most]
            looked_at, start = looked_at + len(some), some[-1].position
        raise _too_wide(self._wanted, f"{looked_at:,} failures were looked at")

    async def _some_failures(self, start: Position | None) -> list[Found]:
        found: list[Found] = []
        for window in self._windows(start):
            for scope in self._scopes():
                rows = await lists.failures(self._connection, scope, window)
                found += [_found(row, position_at(row["recorded_at"], row["id"])) for row in rows]
            if len(found) >= self._scope.most:
                break
        return self.merged(found)

    def _windows(self, start: Position | None) -> list[lists.HistorySpan]:
        """Spans of history, the latest first."""
        since = self._wanted.since or EARLIEST
        top = min(start or position_at(LATEST), position_at(self._wanted.until or LATEST, _NO_ID))
        before, before_id = top.instant, top.run_id
        base, windows = min(before, self._now), []
        for span in WINDOWS:
            bottom = max(since, base - span if base - EARLIEST > span else EARLIEST)
            windows.append(lists.HistorySpan(before, before_id, bottom))
            if bottom == since:
                break
            before, before_id = bottom, _NO_ID
        return windows

    def _scopes(self) -> list[lists.Scope]:
        """On Citus, history is asked lane by lane; elsewhere its index knows no lanes, and one question does."""
        if not self._is_spread:
            return [self._scope]
        return [self._scope._replace(lanes=[lane]) for lane in self._scope.lanes]

    # ── together ────────────────────────────────────────────────────────────────────────────────────────────

    def merged(self, found: list[Found]) -> list[Found]:
        """In order, as many as are wanted. A scan that gave up above that leaves the rest unknown."""
        page: list[Found] = []
        for each in sorted(found, key=lambda each: each.position, reverse=True):
            if len(page) == self._scope.most:
                break
            if each.is_match:
                page.append(each)
            if each.is_last and len(page) < self._scope.most:
                raise _too_wide(self._wanted, f"{self._scope.bound:,} runs in a row were looked at")
        return page


_NO_ID = type(LAST_ID)(int=0)


def _found(row: Record, position: Position) -> Found:
    return Found(position, State(row["state"]), row, row["is_match"], row["is_last"], row["error"])


async def with_errors(connection: Connection, found: Sequence[Found], *, tenant_id: int) -> list[Found]:
    """A dead letter's place does not hold its error; history does."""
    dead = [each.row for each in found if each.state is State.DEAD and each.error is None]
    errors = await lists.last_errors(connection, dead, tenant_id=tenant_id)
    return [each._replace(error=each.error or errors.get(each.row["id"])) for each in found]


def _is_about(error: str | None, text: str | None) -> bool:
    document = error_of(error) or {}
    said = f"{document.get('type') or ''}: {document.get('message') or ''}"  # as lists/unsuccessful puts it
    return text is None or text.lower() in said.lower()


def error_of(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    error: dict[str, Any] = msgspec.json.decode(text)
    error.pop("traceback", None)
    return error


def _too_wide(wanted: RunFilter, why: str) -> FilterTooWide:
    missing = [
        name
        for name, value in (
            ("a job", wanted.jobs),
            ("a queue", wanted.queues),
            ("a state", wanted.states),
            ("a time (since, until)", wanted.since or wanted.until),
        )
        if not value
    ]
    add = f"Add {', '.join(missing)}" if missing else "Narrow the time (since, until)"
    return FilterTooWide(
        f"The filter is too wide: {why}, and there may be more that match.",
        hint=f"{add}, so that fewer runs have to be looked at.",
        field="filter",
        value=wanted.as_document(),
        rule=f"tags, errors and states of failures are looked for among {ROWS_PER_SCAN:,} runs at most",
    )

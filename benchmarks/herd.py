"""A herd: very many schedules due in the same second, beside as many runs that simply lie in line; and spread.

While it is drained, somebody else submits a run now and then to another queue of the same worker. Before each drain
tables are vacuumed and there is a checkpoint: filling writes so much that both would else fall into some of the drains.
"""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TYPE_CHECKING

from benchmarks import schedule_checking as checking
from benchmarks import schedule_filling as filling
from benchmarks.filling import fill
from benchmarks.harness import (
    Numbers,
    bar,
    durable_server,
    fresh_database,
    medians,
    observer,
    percentile,
    say,
    until_finished,
    wait_until,
)
from benchmarks.jobs import noop, stranger
from benchmarks.processes import Producer, Scheduler, Worker
from mainspring import Mainspring

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from benchmarks.harness import Looker

FIELDS = (
    "first_start_ms",
    "drain_s",
    "plain_drain_s",
    "ratio",
    "other_queue_p99_ms",
    "spread_deviation",
    "spread_lateness_p95_ms",
)
COUNT, ROUNDS, SPREAD_ROUNDS = 200_000, 5, 3
SPREAD, SECOND = timedelta(seconds=10), timedelta(seconds=1)
STRANGERS_PER_SECOND, WARM_UP = 50, 500
SLOWEST_FIRING = 5_000  # per second: herds exist long before they are due, so there is time for that
QUEUE = noop.definition.queue

OF_JOB = "from attempt where job_id = (select id from job where name = $1 limit 1) and started_at is not null"
STARTED = f"select count(*) >= $2 {OF_JOB} and started_at >= $3"
STARTS = f"select min(started_at), max(started_at) {OF_JOB} and started_at >= $2"
STAGED = "select count(*) from occurrence where nominal_at = $1 and fired_at < nominal_at"
ARE_STAGED = "select clock_timestamp() >= $1 or (select count(*) from occurrence where nominal_at = $1) >= $2"
STRANGERS_WAIT = """
select exists (select from ready where job_id = (select id from job where name = $1 limit 1) and submitted_at <= $2)"""
# The caller notes the moment of its call in the payload, as for `latency`.
WAITS = f"""
select extract(epoch from started_at) - (convert_from(payload, 'utf8')::jsonb ->> 'note')::double precision as wait
{OF_JOB} and submitted_at >= $2 and submitted_at <= $3"""  # noqa: S608


async def run(seconds: float, *, count: int = COUNT, rounds: int = ROUNDS) -> Numbers:
    """`seconds` is the patience with which a herd may drain."""
    async with durable_server() as server, AsyncExitStack() as stack:
        url = await fresh_database(server, "herd")
        looker = await stack.enter_async_context(observer(url))
        client = await stack.enter_async_context(Mainspring(url))
        stack.enter_context(Scheduler(url))
        stack.enter_context(Worker(url, queues=[QUEUE, stranger.definition.queue]))
        other = stack.enter_context(Producer(url, job="stranger", per_second=STRANGERS_PER_SECOND, warm_up=1))
        await other.is_warm()
        other.begin()
        await fill(url, WARM_UP)
        await until_finished(looker, WARM_UP, seconds=60)
        await filling.until_alive(looker)
        bench = Herd(url, looker, client, count, seconds)
        found = medians([await bench.round(number, rounds) for number in range(1, rounds + 1)])
        spread = medians([await bench.spread() for _ in range(min(rounds, SPREAD_ROUNDS))])
        return found | {"ratio": found["drain_s"] / found["plain_drain_s"]} | spread


class Herd:
    """One database with a scheduler, a worker and somebody else at work, and what is measured there."""

    def __init__(self, url: str, looker: Looker, client: Mainspring, count: int, patience: float) -> None:
        self._url = url
        self._looker = looker
        self._client = client
        self._count = count
        self._patience = patience

    async def round(self, number: int, of: int) -> Numbers:
        """Both drains, in turns who is the first: the second one finds more in history."""
        numbers: Numbers = {}
        for drain in (self._plain, self._herd) if number % 2 else (self._herd, self._plain):
            numbers |= await drain()
        say(
            f"round {number} of {of}: first start after {numbers['first_start_ms']:.0f} ms, all {self._count:,} after"
            f" {numbers['drain_s']:.1f} s; lying in line they take {numbers['plain_drain_s']:.1f} s"
        )
        return numbers

    async def _herd(self) -> Numbers:
        at = await self._due_together("herd")
        first_at, last_at = await self._drained(at)
        staged = await self._looker.fetchval(STAGED, at)
        other_queue_p99_ms = await self._other_queue(at, max(last_at, at + SECOND))
        await filling.remove(self._looker, "herd")
        if staged < self._count:
            say(f"only {staged / self._count:.0%} of the herd were staged when its instant came")
        return {
            "first_start_ms": (first_at - at) / timedelta(milliseconds=1),
            "drain_s": (last_at - at).total_seconds(),
            "other_queue_p99_ms": other_queue_p99_ms,
        }

    async def _other_queue(self, since: datetime, until: datetime) -> float:
        """How long runs of another queue waited that were submitted meanwhile; those that wait longest count, too."""

        async def have_left() -> bool:
            return not await self._looker.fetchval(STRANGERS_WAIT, stranger.name, until)

        if not await wait_until(have_left, seconds=self._patience):
            raise RuntimeError(f"Runs of another queue have not started within {self._patience:.0f} s.")
        await filling.until(self._looker, until + SECOND, "until they are settled")
        rows = await self._looker.fetch(WAITS, stranger.name, since, until)
        return percentile([1000 * float(row["wait"]) for row in rows], 0.99)

    async def _plain(self) -> Numbers:
        """From the first start to the last, of as many plain runs as lie in line when their queue is opened."""
        await self._client.queues.pause(QUEUE, reason="benchmark")
        say(f"filling the line with {self._count:,} plain runs")
        await fill(self._url, self._count)
        await self._tidy()
        since: datetime = await self._looker.fetchval("select clock_timestamp()")
        await self._client.queues.resume(QUEUE)
        first_at, last_at = await self._drained(since)
        return {"plain_drain_s": (last_at - first_at).total_seconds()}

    async def _due_together(self, prefix: str, spread: timedelta | None = None) -> datetime:
        count = self._count
        at = await filling.load_ahead(
            self._url,
            self._looker,
            prefix,
            count,
            lambda at: filling.herd(prefix, count, at, spread),
            lead=filling.LEAD + count / SLOWEST_FIRING,
        )
        if spread is None:  # else the last of them are staged while the first are executed
            await self._staged(at)
        await self._tidy()
        await filling.until(self._looker, at, "until the herd is due")
        return at

    async def _tidy(self) -> None:
        for statement in ("vacuum (analyze) ready, attempt, cursor, occurrence", "checkpoint"):
            await self._looker.execute(statement)

    async def _staged(self, at: datetime) -> None:
        """Wait until all of them are in line, or their instant has come."""

        async def are_staged() -> bool:
            return bool(await self._looker.fetchval(ARE_STAGED, at, self._count))

        await wait_until(are_staged, seconds=self._patience, every=0.5)

    async def _drained(self, since: datetime) -> tuple[datetime, datetime]:
        """When the first of them started and when the last."""

        async def have_started() -> bool:
            return bool(await self._looker.fetchval(STARTED, noop.name, self._count, since))

        if not await wait_until(have_started, seconds=self._patience, every=0.5):  # counting takes processor time
            raise RuntimeError(f"Not all of {self._count:,} runs have started within {self._patience:.0f} s.")
        first_at, last_at = await self._looker.fetchrow(STARTS, noop.name, since)  # type: ignore[misc]
        return first_at, last_at

    async def spread(self) -> Numbers:
        at = await self._due_together("spread", SPREAD)
        await self._drained(at)
        _, started = await checking.recorded(self._looker, "spread", at, at + SPREAD)
        await filling.remove(self._looker, "spread")
        off = deviation([each.due_at - at for each in started], SPREAD)
        p95 = percentile(checking.lateness_ms(started), 0.95)
        say(f"spread over {SPREAD.total_seconds():.0f} s: within {off:.1%} of even, lateness p95 {p95:.0f} ms")
        return {"spread_deviation": off, "spread_lateness_p95_ms": p95}


def deviation(delays: Sequence[timedelta], spread: timedelta) -> float:
    """By how much the second with the most unusual number of instants is off, as a share of an even number."""
    seconds = int(spread.total_seconds())
    even, found = len(delays) / seconds, Counter(int(each.total_seconds()) for each in delays)
    return max(abs(found[second] / even - 1) for second in range(seconds))


def show(numbers: Numbers) -> str:
    drain, plain = numbers["drain_s"], numbers["plain_drain_s"]
    return "\n".join(
        [
            bar("due in the same second", drain, max(drain, plain), "s until all have started"),
            bar("simply lying in line", plain, max(drain, plain), "s until all have started"),
            f"  ratio {numbers['ratio']:.2f} · the first starts after {numbers['first_start_ms']:.0f} ms"
            f" · another queue waits {numbers['other_queue_p99_ms']:.0f} ms (p99)",
            f"  spread over {SPREAD.total_seconds():.0f} s: within {numbers['spread_deviation']:.1%} of even,"
            f" lateness p95 {numbers['spread_lateness_p95_ms']:.0f} ms",
        ]
    )

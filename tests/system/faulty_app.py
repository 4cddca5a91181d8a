"""The application that fault tests run: handlers that write down what they do in a table of their own.

`MAINSPRING_SABOTAGE` switches one mechanism of the engine off, for the controls: a fault test must fail then.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import asyncpg
import psycopg
from tests.system import sabotage

from mainspring import Breaker, Context, Fail, Limit, Mainspring, Retry, RetryPolicy
from mainspring.errors import LeaseLost

sabotage.apply()
app = Mainspring()
_pool: asyncpg.Pool[asyncpg.Record] | None = None
_opening = asyncio.Lock()


async def _effects() -> asyncpg.Pool[asyncpg.Record]:
    global _pool
    async with _opening:
        if _pool is None:
            _pool = await asyncpg.create_pool(os.environ["EFFECTS_URL"], min_size=1, max_size=6)
    return _pool


async def note(context: Context, what: str) -> None:
    """Leave an effect outside of Mainspring, over a connection that no fault touches."""
    await (await _effects()).execute(
        "insert into effect (run_id, fence, pid, what) values ($1, $2, $3, $4)",
        context.run_id,
        context.fence,
        os.getpid(),
        what,
    )


UNTIL_TOLD = -1.0  # in place of a number of seconds: for as long as the test has not said so


async def rest(seconds: float) -> None:
    if seconds != UNTIL_TOLD:
        await asyncio.sleep(seconds)
        return
    while not await (await _effects()).fetchval("select exists (select from effect where what = 'go on')"):
        await asyncio.sleep(0.05)


@app.job
async def quick(number: int) -> int:
    return number


@app.job
async def touch(context: Context, number: int) -> int:
    await note(context, "start")
    return number


@app.job
async def nap(context: Context, seconds: float) -> str:
    await note(context, "start")
    await rest(seconds)
    await note(context, "end")
    return "rested"


@app.job(limit=Limit(1, key="customer"))
async def nap_in_turn(context: Context, customer: str, seconds: float) -> None:
    await note(context, "start")
    await rest(seconds)
    await note(context, "end")


# Under limits and in graphs. They write nothing down: history tells of them, whatever became of the database meanwhile.


@app.job(limit=Limit(1, key="customer"))
async def pause_in_turn(customer: str, seconds: float) -> None:
    await rest(seconds)


@app.job(limit=Limit(1, key="customer", order="strict"))
async def pause_in_order(customer: str, number: int, seconds: float) -> None:
    await rest(seconds)


@app.job(limit=Limit(rate="100/s", burst=5))
async def pause_at_a_rate(seconds: float) -> None:
    await rest(seconds)


@app.job
async def pause(seconds: float) -> None:
    await rest(seconds)


@app.job(limit=Limit(4, share="shop"))
async def pause_in_shares(shop: str, seconds: float) -> None:
    await rest(seconds)


@app.job(queue="marked")
async def pause_at_marks(seconds: float) -> None:
    await rest(seconds)


@app.job
async def lead() -> int:
    await rest(0.01)
    return 1


@app.job(after="lead")
async def follow() -> None:
    await rest(0.01)


class TargetIsAway(Exception):
    """What `call` calls does not answer."""


@app.job(
    breaker=Breaker(3, key="customer", probe_after=1, max_probe_after=2),
    retry=RetryPolicy(max_attempts=1_000, first_delay=timedelta(seconds=3), back_off="constant"),
)
async def call(context: Context, customer: str) -> None:
    """Fails while the last thing that was said of the customer's target is that it is away."""
    await note(context, "start")
    await note(context, f"call {customer}")
    is_away = await (await _effects()).fetchval(
        "select what like 'away %' from effect where what in ('away ' || $1, 'back ' || $1) order by at desc limit 1",
        customer,
    )
    await asyncio.sleep(0.1)
    await note(context, f"end {customer}")
    if is_away:
        raise TargetIsAway(customer)


async def nap_and_tell(context: Context, seconds: float) -> str:
    try:
        return await nap.handler.function(context, seconds)  # type: ignore[no-any-return]
    except asyncio.CancelledError:
        await note(context, "stopped")
        raise


@app.job(on_disconnect="stop")
async def nap_unless_alone(context: Context, seconds: float) -> str:
    return await nap_and_tell(context, seconds)


@app.job(delivery="at_most_once")
async def nap_at_most_once(context: Context, seconds: float) -> str:
    return await nap_and_tell(context, seconds)


@app.job
async def die_after_effect(context: Context) -> str:
    await note(context, "start")
    if context.fence == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


@app.job
def hold_the_gil(seconds: float) -> str:
    """A tight loop in a thread: the event loop hardly gets a turn."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(100_000))
    return "done"


@app.job(retry=RetryPolicy(max_attempts=3, first_delay=timedelta(milliseconds=50), factor=1))
async def fail_twice(context: Context) -> str:
    if context.attempt < 3:
        raise RuntimeError(f"attempt {context.attempt}")
    return "at last"


# ── handlers that take too long ─────────────────────────────────────────────────────────────────────────────────

ONCE = RetryPolicy(max_attempts=1)
TOO_LONG = 600.0


@app.job(timeout=0.5, retry=ONCE)
async def oversleep(context: Context) -> None:
    """It yields, so it can be cancelled."""
    await note(context, "start")
    await asyncio.sleep(TOO_LONG)


@app.job(timeout=0.5, retry=ONCE)
async def oversleep_deaf(context: Context) -> None:
    """It yields, and goes on when it is cancelled."""
    await note(context, "start")
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(TOO_LONG)


@app.job(timeout=0.5, retry=ONCE)
def oversleep_and_look(context: Context) -> None:
    """In a thread, looking at its context now and then."""
    while True:
        context.raise_if_cancelled()
        time.sleep(0.01)


@app.job(timeout=0.5, retry=ONCE)
def oversleep_blindly() -> None:
    """In a thread, looking at nothing."""
    time.sleep(TOO_LONG)


@app.job(timeout=0.5, retry=ONCE, isolated=True)
def oversleep_isolated() -> None:
    """In a process of its own, looking at nothing."""
    time.sleep(TOO_LONG)


@app.job(isolated=True)
def decide_isolated(context: Context) -> Any:
    """In a process of its own; raises a decision, then returns one."""
    if context.fence == 1:
        raise Retry("not yet", after=0.1)
    return Fail("never")


@app.job(timeout=2.0)
async def block_the_loop(context: Context) -> str:
    """It never yields, the first time."""
    if context.fence == 1:
        time.sleep(TOO_LONG)
    return "went through"


@app.job(timeout=2.0)
def hold_the_gil_in_c(context: Context) -> str:
    """A call into C that lets nobody else in, the first time."""
    if context.fence == 1:
        re.fullmatch(r"(a+)+", "a" * 60 + "b")
    return "went through"


@app.job(run_timeout=5.0, retry=RetryPolicy(max_attempts=1_000, first_delay=timedelta(milliseconds=50), factor=1))
async def fail_for_ever(context: Context) -> None:
    await note(context, "start")
    raise RuntimeError(f"attempt {context.attempt}")


# ── modes of delivery ───────────────────────────────────────────────────────────────────────────────────────────
# Each does its work, and then its process dies between the effect and its acknowledgement if `dies` says so.


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@app.job
async def pay_at_least_once(context: Context, dies: str, seconds: float = 0.0) -> str:
    await note(context, "start")
    await note(context, "paid")
    await rest(seconds)
    if dies and context.fence == 1:
        _die()
    return "paid"


@app.job(delivery="at_most_once")
async def pay_at_most_once(context: Context, dies: str, seconds: float = 0.0) -> str:
    return await pay_at_least_once.handler.function(context, dies, seconds)  # type: ignore[no-any-return]


@app.job(delivery="transactional")
async def pay_transactionally(context: Context, dies: str, seconds: float = 0.0) -> None:
    """Dies `before` or `after` its COMMIT, or `while` it is under way."""
    await note(context, "start")
    async with (await _effects()).acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(
            "insert into effect (run_id, fence, pid, what) values ($1, $2, $3, 'paid')",
            context.run_id,
            context.fence,
            os.getpid(),
        )
        await rest(seconds)
        await context.finish(connection, "paid")
        if dies == "before" and context.fence == 1:
            _die()
        if dies == "while" and context.fence == 1:
            asyncio.get_running_loop().call_later(0.002, _die)
        await transaction.commit()
    if dies == "after" and context.fence == 1:
        _die()


@app.job(delivery="transactional", isolated=True)
def pay_from_a_process_of_its_own(context: Context, dies: str) -> None:
    """The same, isolated and blocking."""
    with psycopg.connect(os.environ["EFFECTS_URL"]) as connection:
        connection.execute("insert into effect (run_id, what) values (%s, 'paid')", (context.run_id,))
        context.finish_sync(connection, "paid")
        if dies == "before" and context.fence == 1:
            _die()
        connection.commit()
    if dies == "after" and context.fence == 1:
        _die()


# ── handlers that wait for others ───────────────────────────────────────────────────────────────────────────────


@app.job
async def wait_for_child(context: Context) -> int:
    await note(context, "waiting")
    return await (await quick.submit(7)).result()


@app.job
def wait_for_child_in_thread() -> int:
    return quick.submit_sync(7).result_sync()


@app.job(isolated=True)
async def wait_for_child_isolated() -> list[int]:
    handles = [await quick.submit(number) for number in (3, 4)]
    return await asyncio.gather(*[handle.result() for handle in handles])


@app.job(isolated=True)
def wait_for_child_isolated_and_blocking() -> int:
    return quick.submit_sync(7).result_sync()


@app.job(isolated=True)
async def wait_for_too_long(context: Context) -> None:
    handle = await quick.options(delay=TOO_LONG).submit(7)
    await note(context, "waiting")
    await handle.result()


# ── handlers that submit children ───────────────────────────────────────────────────────────────────────────────


@app.job
async def fan_out(context: Context, count: int, seconds: float, dies: bool = False) -> int:
    await note(context, "start")
    await nap.options(child=True).submit_many([{"seconds": seconds}] * count)
    if dies and context.fence == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return count


@app.job(isolated=True)
async def fan_out_isolated(context: Context, count: int, seconds: float) -> int:
    for _ in range(count):
        await nap.options(child=True).submit(seconds)
    return count


@app.job(isolated=True)
def fan_out_isolated_and_blocking(context: Context, count: int, seconds: float) -> int:
    for _ in range(count):
        nap.options(child=True).submit_sync(seconds)
    return count


# ── handlers that are called for a chunk of runs ────────────────────────────────────────────────────────────────

CHUNK = 5


@dataclass
class Row:
    number: int
    seconds: float = 0.0
    poison: bool = False


@app.job(chunk=CHUNK, chunk_wait=60.0, retry=RetryPolicy(max_attempts=2, first_delay=timedelta(milliseconds=50)))
async def store_rows(contexts: list[Context], rows: list[Row]) -> list[int]:
    """Kills its process if there is poison among the rows."""
    for context in contexts:
        await note(context, "start")
    await rest(max(row.seconds for row in rows))
    if any(row.poison for row in rows):
        os.kill(os.getpid(), signal.SIGKILL)
    for context in contexts:
        await note(context, f"end of {len(rows)}")
    return [row.number for row in rows]


# ── handlers that report ────────────────────────────────────────────────────────────────────────────────────────

STEPS = 10


@app.job
async def ten_steps(context: Context) -> str:
    """Each attempt takes one step and then waits to be killed; the last one finds nothing left to do."""
    for step in range(context.checkpointed or 0, STEPS):
        await note(context, f"step {step}")
        await context.checkpoint(step + 1)
        await note(context, "waiting to be killed")
        await asyncio.sleep(3600)
    return "all steps"


@app.job
async def speak_and_wait(context: Context) -> str:
    """Says something, waits to be killed, and is brief when it is tried again."""
    context.log(f"fence {context.fence} speaking")
    logging.getLogger("shop").warning("a line of logging")
    print("a printed line")
    if context.fence == 1:
        context.progress(0.25, "a quarter")
        await note(context, "start")
        await asyncio.sleep(3600)
    return "done"


@app.job
async def keep_storing(context: Context) -> str:
    """Stores its fence; the first attempt does so again when it is told, and may have been frozen meanwhile."""
    await context.checkpoint(context.fence)
    await note(context, "start")
    if context.fence == 1:
        await rest(UNTIL_TOLD)
        try:
            await context.checkpoint(context.fence)
        except LeaseLost:
            await note(context, "refused")
    await asyncio.sleep(3600)
    return "unreachable"


if not os.environ.get("WITHOUT_NEW_JOB"):

    @app.job
    async def new_job(number: int) -> int:
        return number

"""Real programs under roles that have exactly what `mainspring grants` prints: nothing of theirs is ever denied."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import asyncpg
import psycopg
import pytest
from tests.waiting import PATIENCE

from mainspring import Context, Mainspring, RetryPolicy, RunFilter, wiring
from mainspring.errors import MainspringError, RunCancelled, RunExpired, RunFailed, RunLost
from mainspring.keeper.expirer import Expirer
from mainspring.keeper.partitioner import Partitioner
from mainspring.keeper.sampler import Sampler
from mainspring.keeper.sweeper import Sweeper
from mainspring.store.database import Database
from mainspring.store.grants import RoleKind
from mainspring.testing import run_until_idle

from .faulty_app import UNTIL_TOLD
from .machinery import SHORT_LEASE_TIME
from .test_cli import mainspring

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from .machinery import System

    NewRole = Callable[..., Awaitable[str]]


PROVOKED = "must be owner of table occurrence"


@dataclass
class Roles:
    """Roles of one database, and what the server refused them."""

    system: System
    new_role: NewRole
    log: Path
    made: list[str] = field(default_factory=list)

    async def url(self, *kinds: RoleKind) -> str:
        """The URL for a new role. It may use the table of effects, which is the application's own."""
        self.made.append(await self.new_role(*kinds))
        await self.system.connection.execute(
            f"grant usage on schema public to {self.made[-1]}; grant all on public.effect to {self.made[-1]}"
        )
        return self.system.url.replace("mainspring@", f"{self.made[-1]}@")

    async def denials(self) -> list[str]:
        """What was denied so far. The log is written a little later, so each role is denied something on purpose."""
        for role in self.made:
            await self._provoke(role)
            assert await self.system.eventually(partial(self._has_provoked, role))
        return [line for line in self._errors(*self.made) if PROVOKED not in line]

    async def _provoke(self, role: str) -> None:
        connection = await asyncpg.connect(self.system.url.replace("mainspring@", f"{role}@"))
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match=PROVOKED):
            await connection.execute("drop table mainspring.occurrence")
        await connection.close()

    async def _has_provoked(self, role: str) -> bool:
        return any(PROVOKED in line for line in self._errors(role))

    def _errors(self, *roles: str) -> list[str]:
        lines = (line for file in self.log.glob("server-*.log") for line in file.read_text().splitlines())
        refused = (line for line in lines if "permission denied" in line or "must be owner" in line)
        return [line for line in refused if any(f" {role}@" in line for role in roles)]


@pytest.fixture
def roles(system: System, new_role: NewRole, shared_directory: Path) -> Roles:
    return Roles(system, new_role, shared_directory / "data" / "postgresql" / "log")


async def ending(handle: Any) -> Any:
    """What a run came to: its result, or the error instead."""
    try:
        return await handle.result(timeout=PATIENCE)
    except MainspringError as error:
        return type(error)


async def test_a_role_that_lacks_something_is_found_out(roles: Roles) -> None:
    """The control of all tests below."""
    connection = await asyncpg.connect(await roles.url(RoleKind.READER))
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute("delete from mainspring.ready")
    await connection.close()

    assert len(await roles.denials()) == 1


# ── a worker ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_workers_role_is_enough_for_supervised_workers_and_their_keepers(
    system: System, jobs: Any, roles: Roles
) -> None:
    url = await roles.url(RoleKind.WORKER)
    jobs.app.use(wiring.DatabaseLocation(url=await roles.url(RoleKind.CLIENT)))
    settings: dict[str, Any] = {"url": url, "lease_time": SHORT_LEASE_TIME}
    expired = await jobs.quick.options(start_within=0.01).submit(1)
    held = await jobs.new_job.submit(2)
    system.start(environment={"EFFECTS_URL": url, "WITHOUT_NEW_JOB": "1"}, **settings)
    assert await system.eventually(lambda: system.count("held"))

    handles = {
        "executed": await jobs.quick.submit(3),
        "promoted": await jobs.quick.options(delay=0.2).submit(4),
        "retried": await jobs.fail_twice.submit(),
        "timed out": await jobs.oversleep.submit(),
        "buried": await jobs.decide_isolated.submit(),
        "crashed": await jobs.die_after_effect.submit(),
        "lost": await jobs.pay_at_most_once.submit("yes"),
        "finished": await jobs.pay_transactionally.submit(""),
        "finished apart": await jobs.pay_from_a_process_of_its_own.submit(""),
    }
    assert {name: await ending(handle) for name, handle in handles.items()} == {
        "executed": 3,
        "promoted": 4,
        "retried": "at last",
        "timed out": RunFailed,
        "buried": RunFailed,
        "crashed": "alive",
        "lost": RunLost,
        "finished": "paid",
        "finished apart": "paid",
    }

    napping, speaking = await jobs.nap.submit(UNTIL_TOLD), await jobs.speak_and_wait.submit()
    await jobs.ten_steps.submit()
    assert await system.eventually(lambda: system.count("effect", "what = 'waiting to be killed'"))
    assert await system.eventually(lambda: system.count("log"))
    assert await system.eventually(lambda: system.count("progress"))
    assert await system.eventually(lambda: system.count("checkpoint"))
    await napping.cancel(reason="enough")
    assert await ending(napping) is RunCancelled
    system.trees[0].kill()  # nobody but a keeper can notice
    system.start(environment={"EFFECTS_URL": url}, **settings)

    assert (await ending(speaking), await ending(held), await ending(expired)) == ("done", 2, RunExpired)
    assert await system.eventually(lambda: system.count("load_sample"))
    assert await system.eventually(lambda: system.count("worker_tally"))
    assert system.trees[1].stop() == 0
    assert await roles.denials() == []


async def test_a_workers_role_is_enough_for_the_rare_duties_of_a_keeper(system: System, roles: Roles) -> None:
    """Making partitions, forgetting keys and samples, sweeping up: each as a keeper's own connection does it."""
    connection = await Database(await roles.url(RoleKind.WORKER)).connect("keeper")
    await system.connection.execute(
        """
        insert into worker (id, host, pid, queues, handlers, slots, lease_seconds, version, state, ended_at)
        values ('00000000-0000-4000-8000-000000000001', '', 1, '{}', '{}', 1, 1, '', 'lost', now() - interval '1 day');
        insert into worker_tally values (1, '00000000-0000-4000-8000-000000000001', 1, 5, 5, 0);
        insert into load_sample (lane, line_id, at, depth, holding, finished, busy_seconds)
        values (0, 1, now() - interval '1 day', 0, 0, 0, 0);
        insert into idempotency (lane, tenant_id, key, run_id, digest, check_at)
        values (0, 1, 'old', gen_random_uuid(), '', now() - interval '2 days');
        insert into progress (lane, run_id, fence, attempt, fraction, message, noted_at)
        values (0, gen_random_uuid(), 1, 1, 0, '', now() - interval '1 day');
        insert into checkpoint (lane, run_id, fence, value, stored_at)
        values (0, gen_random_uuid(), 1, '', now() - interval '1 day');
        insert into later (lane, id, tenant_id, job_id, job_version, line_id, priority, due_at, expires_at, payload)
        values (0, gen_random_uuid(), 1, 1, 1, 1, 5, now() + interval '1 day', now() - interval '1 day', '{}');
        drop table attempt_%1$s; drop table log_%1$s
        """.replace(
            "%1$s", await system.value("select to_char(now() at time zone 'UTC' + interval '3 days', 'YYYYMMDD')")
        )
    )
    for duty in (Partitioner(), Expirer(lanes=8), Sampler(), Sweeper(lanes=8)):
        await duty.step(connection)
    await connection.close()

    for table in ("idempotency", "progress", "checkpoint", "later", "load_sample"):
        assert await system.count(table) == 0, table
    assert await system.count("worker_tally", "worker_id = '00000000-0000-0000-0000-000000000000'") == 1
    made = "to_regclass('log_' || to_char(now() at time zone 'UTC' + interval '3 days', 'YYYYMMDD')) is not null"
    assert await system.value(f"select {made}")
    assert await roles.denials() == []


# ── a client and a reader ───────────────────────────────────────────────────────────────────────────────────────


class Shop:
    """The same jobs, for the one who executes them (the owner) and for those who do not."""

    def __init__(self, url: str) -> None:
        self.app = Mainspring(url, submitted_by="tester")
        self.sell = self.app.job(name="sell")(self._sell)
        self.pay = self.app.job(name="pay", queue="bank", retry=RetryPolicy(max_attempts=1))(self._pay)

    async def _sell(self, context: Context, n: int = 0) -> int:
        context.log("sold")
        return n

    async def _pay(self, n: int = 0) -> None:
        raise ConnectionError("closed")


@asynccontextmanager
async def shop_of(url: str) -> AsyncIterator[Shop]:
    shop = Shop(url)
    yield shop
    await shop.app.close()


async def test_a_clients_role_is_enough_for_what_applications_do(url: str, roles: Roles) -> None:
    mine = await roles.url(RoleKind.CLIENT)
    async with shop_of(url) as owner, shop_of(mine) as shop:
        app = shop.app
        sold = await shop.sell.submit(1)  # it defines the job, too
        keyed = await shop.sell.options(key="a").submit(2)
        assert await shop.sell.options(key="a").submit(2) == keyed
        dead = [*await shop.pay.submit_many([{"n": n} for n in range(4)])]
        await submit_in_transactions(shop, mine)
        await run_until_idle(owner.app)
        assert (await sold.result(timeout=PATIENCE), await ending(dead[0])) == (1, RunFailed)
        assert [line.text for line in await sold.logs()] == ["sold"]
        assert [each async for each in sold.watch()]

        assert (await app.runs.requeue(dead[0].id)).done
        assert (await app.runs.purge(dead[1].id, reason="x")).done
        assert await app.runs.rerun(dead[2].id) == dead[2]
        assert await app.runs.rerun(sold.id) != sold
        waiting = [await shop.sell.options(delay=3600).submit(n) for n in range(4)]
        assert await waiting[0].cancel() == "cancelled"
        await app.runs.change(waiting[1].id, priority=1)
        for kind, change in (("change", {"priority": 2}), ("cancel", {})):
            operation = await app.operations.start(kind, RunFilter(jobs=("sell",), states=("scheduled",)), **change)  # type: ignore[arg-type]
            assert [each async for each in app.operations.work(operation.id)][-1].ended_at
        assert len(await app.operations.list()) == 2
        assert [each async for each in app.runs.each()]
        assert (await app.runs.count()).number
        assert await app.queues.pause("bank", reason="x")
        assert await app.queues.resume("bank", reason="x")
        assert {queue.name for queue in await app.queues.list()} == {"bank", "default"}
    assert await roles.denials() == []


async def submit_in_transactions(shop: Shop, url: str) -> None:
    connection = await asyncpg.connect(url)
    async with connection.transaction():
        await shop.sell.options(connection=connection).submit(5)
    await connection.close()

    def blocking() -> None:
        with psycopg.connect(url) as mine:
            shop.sell.options(connection=mine).submit_sync(6)
        shop.app.close_sync()

    await asyncio.to_thread(blocking)


async def test_a_clients_role_may_stop_runs_and_drain_workers(system: System, jobs: Any, roles: Roles) -> None:
    jobs.app.use(wiring.DatabaseLocation(url=await roles.url(RoleKind.CLIENT)))
    tree = system.start()
    napping = await jobs.nap.submit(UNTIL_TOLD)
    assert await system.eventually(lambda: system.started(1))
    await napping.cancel()
    assert await ending(napping) is RunCancelled
    await jobs.app.workers.drain(await system.value("select id from worker where state = 'live'"), reason="x")

    assert await asyncio.to_thread(tree.process.wait, PATIENCE) == 0
    assert await roles.denials() == []


READ = """
    run show {sold}|run watch {sold}|run logs {sold}|run list|run list --state dead|job list|job show sell
    dead-letter list|dead-letter show {dead}|operation list|queue list|worker list|top --once
"""
ACT = """
    run submit sell --arg n=1|run submit sell --delay 1h --key k|run change {changed} --priority 1|run rerun {sold}
    dead-letter requeue {dead}|dead-letter purge {other} --reason x --yes|queue pause bank|queue resume bank
    run cancel {waiting} --reason x|run cancel --job sell --state scheduled --reason x --yes
"""


async def commanded(url: str, commands: str, **ids: Any) -> None:
    """Run these commands one after the other, and see that each was done."""
    for words in (words.strip() for line in commands.strip().splitlines() for words in line.split("|")):
        answer = await asyncio.to_thread(mainspring, *words.format(**ids).split(), "-o", "json", "--database-url", url)
        assert answer.code == 0, (words, answer)


@pytest.mark.parametrize(("kind", "commands"), [(RoleKind.READER, READ), (RoleKind.CLIENT, ACT)])
async def test_the_commands_of_readers_and_clients_are_never_denied(
    url: str, roles: Roles, kind: RoleKind, commands: str
) -> None:
    async with shop_of(url) as owner:
        sold = (await owner.sell.submit(1)).id
        dead = [handle.id for handle in await owner.pay.submit_many([{}, {}])]
        await run_until_idle(owner.app)
        waiting = [(await owner.sell.options(delay=3600).submit(n)).id for n in range(2)]
    ids = {"sold": sold, "dead": dead[0], "other": dead[1], "waiting": waiting[0], "changed": waiting[1]}
    await commanded(await roles.url(kind), commands, **ids)

    assert await roles.denials() == []

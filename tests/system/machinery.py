"""Real worker processes against a database of their own, what to do to them, and a look at what became of it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from tests import waiting
from tests.checker import Report, check
from tests.system.worker_server import Supervisor, start_supervisor
from tests.waiting import PATIENCE, until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
    from uuid import UUID

    import asyncpg

ROOT = Path(__file__).parents[2]

LEASE_TIME = 15.0  # no machine is slow enough to make a healthy worker look dead
SHORT_LEASE_TIME = 2.5  # where somebody is to be found dead
ASKING_PAUSE = 0.02  # between two looks at another process's work: each costs it something


async def eventually(condition: Callable[[], Awaitable[Any]]) -> Any:
    """Wait until something holds; answers with what it was. For things that happen in other processes."""
    with contextlib.suppress(TimeoutError):
        return await until(condition, ASKING_PAUSE)
    return False


async def lasting(seconds: float, look: Callable[[], Awaitable[Any]] | None = None) -> None:
    """Let a fault last, looking again and again: its length is what is tested, and if it lasts longer, no less is."""
    end = time.monotonic() + seconds

    async def is_over() -> bool:
        if look is not None:
            await look()
        return time.monotonic() >= end

    await until(is_over, ASKING_PAUSE)


def is_alive(pid: int) -> bool:
    """Neither gone nor a zombie that somebody has yet to bury."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def deliver(number: signal.Signals, process: subprocess.Popen[Any] | Supervisor) -> None:
    """Send a signal and wait until it has arrived: of two that are on their way at once, one is dropped."""
    process.send_signal(number)
    status = Path(f"/proc/{process.pid}/status")
    pending = re.compile(r"^ShdPnd:\s*0*[1-9a-f]", re.MULTILINE)
    assert waiting.eventually(lambda: process.poll() is not None or not pending.search(status.read_text()))


@dataclass
class Tree:
    """A supervisor and its children."""

    process: Supervisor

    def children(self) -> list[int]:
        with contextlib.suppress(OSError):
            path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
            return [int(pid) for pid in path.read_text().split()]
        return []

    def signal_children(self, number: signal.Signals) -> None:
        for pid in self.children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    @contextlib.contextmanager
    def silent_supervisor(self) -> Iterator[None]:
        """Stop the supervisor for a while, so that nobody tells its child anything."""
        self.process.send_signal(signal.SIGSTOP)
        yield
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL to everyone, the supervisor first, so that it cannot react; nobody is left who uses anything."""
        children = self.children()
        self.process.kill()
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        assert waiting.eventually(lambda: not any(map(is_alive, children)))

    def stop(self) -> int:
        """Drain and wait; answers with the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@dataclass
class System:
    """One database, any number of worker trees, and a look at what became of it all."""

    url: str
    connection: asyncpg.Connection[asyncpg.Record]
    trees: list[Tree] = field(default_factory=list)

    def start(
        self,
        *,
        app: str = "tests.system.faulty_app:app",
        sabotage: str = "",
        url: str | None = None,
        environment: dict[str, str] | None = None,
        **settings: Any,
    ) -> Tree:
        """Start a supervised worker."""
        chosen = {"slots": 20, "lease_time": LEASE_TIME, "grace": 5.0, "poll_interval": 0.1} | settings
        process = start_supervisor(
            app,
            msgspec.json.encode(chosen).decode(),
            os.environ
            | {"MAINSPRING_DATABASE_URL": url or self.url, "EFFECTS_URL": self.url, "MAINSPRING_SABOTAGE": sabotage}
            | (environment or {}),
        )
        self.trees.append(Tree(process))
        return self.trees[-1]

    async def eventually(self, condition: Callable[[], Awaitable[Any]]) -> Any:
        return await eventually(condition)

    async def value(self, query: str, *arguments: Any) -> Any:
        return await self.connection.fetchval(query, *arguments)

    async def count(self, table: str, where: str = "true") -> int:
        return int(await self.value(f"select count(*) from {table} where {where}"))  # noqa: S608  tests write both

    async def live_workers(self, count: int) -> bool:
        """Whether so many workers are at work, waiting for it: one that has registered only is not beaten for yet."""
        query = (
            "select count(*) >= $1 from worker join worker_heartbeat on worker_id = id"
            " where state = 'live' and worker_heartbeat.beat > 0"
        )
        return bool(await self.eventually(lambda: self.value(query, count)))

    @contextlib.asynccontextmanager
    async def replacing(self, count: int) -> AsyncIterator[None]:
        """Wait until so many workers have begun to work that were not there before what is done here."""
        known = await self.count("worker_heartbeat", "beat > 0")
        yield
        query = "select count(*) >= $1 from worker_heartbeat where beat > 0"
        assert await self.eventually(lambda: self.value(query, known + count))

    async def beat_again(self, times: int = 2, worker_id: UUID | None = None) -> bool:
        """Whether every worker at work, or this one, beats so often more, waiting for it.

        After two of them, whatever had begun before is over; six of them take a lease time.
        """
        beats = await self.value(
            "select coalesce(jsonb_object_agg(id, pulse.beat), '{}')"
            " from worker_heartbeat as pulse join worker on worker_id = id and state = 'live'"
        )
        query = """
            select bool_and(pulse.beat >= ($1::jsonb ->> id::text)::int + $2)
            from worker_heartbeat as pulse join worker on worker_id = id and state = 'live'
            where id = coalesce($3, id)"""
        return bool(await self.eventually(lambda: self.value(query, beats, times, worker_id)))

    async def tell_them_to_go_on(self) -> None:
        """Let handlers go on that wait `UNTIL_TOLD`."""
        await self.connection.execute("insert into effect (what) values ('go on')")

    async def ended(self, count: int) -> bool:
        """Whether so many runs have ended, waiting for it."""
        return bool(await self.eventually(lambda: self.have_ended(count)))

    async def have_ended(self, count: int) -> bool:
        """Whether so many have by now."""
        query = (
            "select count(distinct run_id) >= $1 from attempt"
            " where state in ('succeeded', 'cancelled', 'expired', 'lost')"
        )
        return bool(await self.value(query, count))

    async def started(self, count: int) -> bool:
        return await self.count("effect", "what = 'start'") >= count

    async def effects(self, what: str = "start") -> list[tuple[UUID, int]]:
        rows = await self.connection.fetch("select run_id, fence from effect where what = $1", what)
        return [(row["run_id"], row["fence"]) for row in rows]

    async def report(self, accepted: Iterable[UUID], **expectations: Any) -> Report:
        report = await check(self.connection, accepted, starts=await self.effects(), **expectations)
        print(report)
        return report

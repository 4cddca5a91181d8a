"""What a handler does to its own process costs that attempt and nothing else. Each kind has its control."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import PATIENCE, eventually

from .machinery import is_alive

if TYPE_CHECKING:
    from .machinery import System

POISON_APP = "tests.system.poison_app:app"


def survivors(pids: list[int], expected: int = 0) -> list[int]:
    """Who is still there once no more are left than expected."""
    eventually(lambda: sum(map(is_alive, pids)) <= expected)
    return [pid for pid in pids if is_alive(pid)]


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def noted(system: System, path: Path, count: int) -> list[int]:
    async def are_there() -> bool:
        return path.exists() and len(path.read_text().splitlines()) >= count

    assert await system.eventually(are_there)
    return [int(line) for line in path.read_text().split()]


async def has_begun(system: System, folder: Path) -> bool:
    async def is_there() -> bool:
        return (folder / "started").exists()

    return bool(await system.eventually(is_there))


# ── crashes ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("segfault", "SIGSEGV"),
        ("abort", "SIGABRT"),
        ("exit", "exit code 3"),
        ("kill", "SIGKILL"),
    ],
)
async def test_a_crash_costs_an_isolated_run_its_attempts_and_its_neighbours_nothing(
    system: System, poisons: Any, kind: str, said: str
) -> None:
    system.start(app=POISON_APP)
    assert await system.live_workers(1)
    neighbours = await poisons.nap.submit_many([{"seconds": 1.0}] * 5)
    victim = await poisons.poison_twice.submit(kind)

    assert await system.eventually(lambda: system.count("dead"))
    run = await victim.find()
    assert [(attempt.number, attempt.outcome) for attempt in run.attempts] == [(1, "crashed"), (2, "crashed")]
    error = run.attempts[-1].error
    assert error["code"] == "process-crashed"
    assert said in error["message"]
    assert [await each.result(timeout=PATIENCE) for each in neighbours] == ["rested"] * 5
    assert await system.count("attempt", "outcome = 'crashed'") == 2
    assert await system.count("worker") == 1


async def test_a_shared_run_that_crashes_is_isolated_then_counted_then_dead(system: System, poisons: Any) -> None:
    """The first crash takes its neighbours along and spends nothing; from then on blame is exact."""
    system.start(app=POISON_APP)
    assert await system.live_workers(1)
    neighbours = await poisons.nap.submit_many([{"seconds": 1.5}] * 5)
    victim = await poisons.shared_poison.submit("segfault")

    assert await system.eventually(lambda: system.count("dead"))
    run = await victim.find()
    assert [(attempt.number, attempt.outcome) for attempt in run.attempts] == [
        (1, "crashed"),  # with its worker, which says nothing about whose fault it was
        (1, "crashed"),
        (2, "crashed"),
    ]
    assert [attempt.error["code"] for attempt in run.attempts] == ["worker-lost", "process-crashed", "process-crashed"]
    assert [await each.result(timeout=PATIENCE) for each in neighbours] == ["rested"] * 5
    report = await system.report([victim.id, *(each.id for each in neighbours)])
    assert report.violations == [], report
    assert await system.count("worker") == 2  # it took one worker with it, and only one


async def test_without_isolation_a_crashing_run_takes_down_one_worker_after_the_other(
    system: System, poisons: Any
) -> None:
    """The control."""
    system.start(app=POISON_APP, sabotage="blame")
    assert await system.live_workers(1)
    await poisons.shared_poison.submit("segfault")

    assert await system.eventually(lambda: system.value("select count(*) >= 3 from worker"))
    assert await system.count("dead") == 0
    assert await system.count("attempt", "error->>'code' = 'process-crashed'") == 0


# ── too much of something ───────────────────────────────────────────────────────────────────────────────────────


async def test_memory_beyond_the_limit_is_refused_and_said(system: System, poisons: Any) -> None:
    system.start(app=POISON_APP)
    within, beyond, unlimited = [
        await poisons.eat_within_limit.submit(8),
        await poisons.eat_within_limit.submit(300),
        await poisons.eat.submit(300),  # the control: without the limit nothing is wrong with it
    ]

    assert await within.result(timeout=PATIENCE) == 8 * 2**20
    assert await unlimited.result(timeout=PATIENCE) == 300 * 2**20
    assert await system.eventually(lambda: system.count("dead"))
    (attempt,) = (await beyond.find()).attempts
    assert attempt.error["code"] == "out-of-memory"
    assert "64 MiB" in attempt.error["message"]


async def test_processor_time_beyond_the_limit_ends_the_process(system: System, poisons: Any) -> None:
    system.start(app=POISON_APP)
    within, beyond, unlimited = [
        await poisons.spin.submit(0.1),
        await poisons.spin.submit(60),
        await poisons.spin_on.submit(3),  # the control: without the limit nothing is wrong with it
    ]

    assert await within.result(timeout=PATIENCE) == "dizzy"
    assert await unlimited.result(timeout=PATIENCE) == "dizzy"
    assert await system.eventually(lambda: system.count("dead"))
    (attempt,) = (await beyond.find()).attempts
    assert attempt.outcome == "crashed"
    assert "SIGXCPU" in attempt.error["message"]
    assert "1 s of processor time" in attempt.error["message"]


# ── what would not stop ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["loop", "gil in C", "gil in re"])
async def test_what_never_ends_is_killed_when_it_is_cancelled(
    system: System, poisons: Any, tmp_path: Path, kind: str
) -> None:
    system.start(app=POISON_APP, cancel_grace=0.2)
    victim = await poisons.poison.submit(kind, str(tmp_path / "started"))
    assert await has_begun(system, tmp_path)
    neighbours = await poisons.nap.submit_many([{"seconds": 0.1}] * 5)
    await victim.cancel()

    assert await system.ended(6)
    (attempt,) = (await victim.find()).attempts
    assert attempt.outcome == "cancelled"
    assert [await each.result(timeout=PATIENCE) for each in neighbours] == ["rested"] * 5


@pytest.mark.parametrize("kind", ["loop", "gil in C", "gil in re"])
async def test_what_never_ends_is_killed_when_its_time_is_up(system: System, poisons: Any, kind: str) -> None:
    system.start(app=POISON_APP, cancel_grace=0.2)
    assert await system.live_workers(1)
    neighbours = await poisons.nap.submit_many([{"seconds": 1.0}] * 5)
    victim = await poisons.poison.options(timeout=0.5).submit(kind)

    assert await system.eventually(lambda: system.count("dead"))
    (attempt,) = (await victim.find()).attempts
    assert attempt.outcome == "timed_out"
    assert [await each.result(timeout=PATIENCE) for each in neighbours] == ["rested"] * 5
    assert await system.count("worker") == 1


@pytest.mark.parametrize("kind", ["gil in C", "gil in re"])
async def test_a_shared_handler_that_holds_the_gil_stops_its_neighbours(
    system: System, poisons: Any, tmp_path: Path, kind: str
) -> None:
    """The control of those that hold it in C or in a runaway expression."""
    system.start(app=POISON_APP, cancel_grace=0.2, lease_time=6.0)
    victim = await poisons.shared_poison.submit(kind, str(tmp_path / "started"))
    assert await has_begun(system, tmp_path)
    await poisons.nap.submit_many([{"seconds": 2.0}] * 5)  # it may take a moment from `started` to the deed
    await victim.cancel()

    assert await system.beat_again(6)  # a lease time
    assert not await system.have_ended(1)


# ── families ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sabotage", ["", "families"])
async def test_a_killed_run_leaves_no_descendant_behind(
    system: System, poisons: Any, tmp_path: Path, sabotage: str
) -> None:
    """Also none that left its session and lost its parent, and none that ignores SIGTERM."""
    system.start(app=POISON_APP, cancel_grace=0.2, sabotage=sabotage)
    victim = await poisons.beget.submit(str(tmp_path / "pids"), seconds=3_600)
    pids = await noted(system, tmp_path / "pids", 3)
    await victim.cancel()
    assert await system.ended(1)

    assert await (await poisons.isolated_nap.submit(0.0)).result(PATIENCE)  # the zygote has done what it was asked to
    expected = 1 if sabotage else 0  # the daemon
    left = survivors(pids, expected)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert len(left) == expected


async def test_a_run_that_ends_well_leaves_no_descendant_behind_either(
    system: System, poisons: Any, tmp_path: Path
) -> None:
    system.start(app=POISON_APP)
    handle = await poisons.beget.submit(str(tmp_path / "pids"), seconds=0.2)

    assert await handle.result(timeout=PATIENCE) == "done"
    assert survivors(await noted(system, tmp_path / "pids", 3)) == []


@pytest.mark.parametrize("sabotage", ["", "leash"])
async def test_nothing_survives_a_worker_that_is_killed(
    system: System, poisons: Any, tmp_path: Path, sabotage: str
) -> None:
    tree = system.start(app=POISON_APP, sabotage=sabotage)
    await poisons.beget.submit(str(tmp_path / "pids"), seconds=3_600)
    pids = await noted(system, tmp_path / "pids", 3)
    (zygote,) = {parent_of(pid) for pid in pids} - set(pids)
    tree.kill()
    assert eventually(lambda: not is_alive(zygote))  # without a word to anybody, if it is sabotaged

    expected = 3 if sabotage else 0
    left = survivors(pids, expected)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert len(left) == expected


async def test_a_run_whose_zygote_is_killed_has_crashed_and_others_begin_again(system: System, poisons: Any) -> None:
    system.start(app=POISON_APP)
    assert await system.live_workers(1)
    victim = await poisons.kill_the_zygote.submit()
    assert await system.eventually(lambda: system.count("dead"))
    after = await poisons.isolated_nap.submit(0.0)

    assert await after.result(timeout=PATIENCE)
    (attempt,) = (await victim.find()).attempts
    assert attempt.outcome == "crashed"
    assert "ended together with the one that started it" in attempt.error["message"]


# ── being told ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("job", ["polite", "polite_async"])
async def test_an_isolated_handler_hears_that_it_is_to_stop(
    system: System, poisons: Any, tmp_path: Path, job: str
) -> None:
    system.start(app=POISON_APP, cancel_grace=60.0)
    handle = await getattr(poisons, job).submit(str(tmp_path / "started"))

    assert await has_begun(system, tmp_path)
    await handle.cancel()

    assert await system.ended(1)
    assert (await handle.find()).state == "cancelled"
    assert (tmp_path / "started").read_text() == "told"


async def test_a_drain_kills_what_does_not_finish_and_gives_it_back(
    system: System, poisons: Any, tmp_path: Path
) -> None:
    tree = system.start(app=POISON_APP, grace=0.5)
    handle = await poisons.beget.submit(str(tmp_path / "pids"), seconds=3_600)
    pids = await noted(system, tmp_path / "pids", 3)

    assert tree.stop() == 0
    run = await handle.find()
    assert run.state == "ready"
    assert [(attempt.number, attempt.outcome) for attempt in run.attempts] == [(1, "interrupted")]
    assert run.attempts_spent == 0
    assert survivors(pids) == []


async def test_an_isolated_handler_that_heeds_a_drain_is_interrupted(
    system: System, poisons: Any, tmp_path: Path
) -> None:
    """It raised because it was told to stop, and nobody wanted the run itself to stop: no attempt is spent."""
    tree = system.start(app=POISON_APP, grace=0.0)
    handle = await poisons.polite.submit(str(tmp_path / "started"))
    assert await has_begun(system, tmp_path)

    assert tree.stop() == 0
    run = await handle.find()
    assert (run.state, run.attempts_spent) == ("ready", 0)
    assert [attempt.outcome for attempt in run.attempts] == ["interrupted"]


async def test_a_drain_lets_an_isolated_run_finish(system: System, poisons: Any, tmp_path: Path) -> None:
    tree = system.start(app=POISON_APP, grace=50.0)
    assert await system.live_workers(1)
    handle = await poisons.isolated_nap.submit(1.0, str(tmp_path / "started"))
    assert await has_begun(system, tmp_path)

    assert tree.stop() == 0
    assert (await handle.find()).state == "succeeded"

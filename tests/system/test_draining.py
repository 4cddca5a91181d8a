"""Workers end when told to, deploys roll, clients repeat themselves: nothing is lost and nothing happens twice."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import PATIENCE

from mainspring.errors import RunAlreadyEnded

from .faulty_app import UNTIL_TOLD
from .machinery import deliver

if TYPE_CHECKING:
    from pathlib import Path

    from .machinery import System


@pytest.mark.invariant(5)
@pytest.mark.parametrize("sabotage", ["", "give_back"])
async def test_a_drain_without_grace_gives_back_at_once_what_is_running(
    system: System, jobs: Any, sabotage: str
) -> None:
    tree = system.start(grace=0.0, lease_time=30.0, slots=5, sabotage=sabotage)
    assert await system.live_workers(1)
    handles = await jobs.nap.submit_many([{"seconds": UNTIL_TOLD}] * 12)
    assert await system.eventually(lambda: system.started(5))
    assert tree.stop() == 0

    given_back = await system.count("ready")
    if sabotage:
        assert given_back < 12  # the rest is left to be rescued some day
        return
    assert given_back == 12
    assert await system.count("attempt", "outcome = 'interrupted' and state = 'ready'") == 5
    report = await system.report([handle.id for handle in handles])
    assert report.violations == [], report
    assert (await handles[0].find()).attempts_spent == 0
    assert await system.count("worker", "state = 'stopped'") == 1


async def test_a_drain_with_grace_lets_handlers_finish(system: System, jobs: Any) -> None:
    tree = system.start(grace=100.0, lease_time=3.0, slots=5)
    assert await system.live_workers(1)
    handles = await jobs.nap.submit_many([{"seconds": UNTIL_TOLD}] * 8)
    assert await system.eventually(lambda: system.started(5))
    tree.process.send_signal(signal.SIGTERM)
    beats = await system.value("select beat from worker_heartbeat")
    assert await system.eventually(lambda: system.value("select beat >= $1 + 8 from worker_heartbeat", beats))
    await system.tell_them_to_go_on()
    assert tree.process.wait(PATIENCE) == 0

    assert await system.count("attempt", "outcome = 'succeeded'") == 5
    assert await system.count("ready") == 3
    assert await system.count("worker", "state = 'lost'") == 0  # it beat while it drained, longer than its lease
    report = await system.report([handle.id for handle in handles])
    assert report.violations == [], report


async def test_a_second_signal_hurries_a_drain(system: System, jobs: Any) -> None:
    tree = system.start(grace=3_600.0)
    assert await system.live_workers(1)
    await jobs.nap.submit_many([{"seconds": UNTIL_TOLD}] * 3)
    assert await system.eventually(lambda: system.started(3))
    for _ in range(2):
        deliver(signal.SIGTERM, tree.process)

    assert tree.process.wait(PATIENCE) == 0
    assert await system.count("ready") == 3


@pytest.mark.invariant(7)
@pytest.mark.parametrize("sabotage", ["", "hold"])
async def test_a_run_no_worker_knows_yet_waits_for_one_that_does(system: System, jobs: Any, sabotage: str) -> None:
    """A rolling deploy: the new job is submitted while only old workers are there."""
    old = system.start(environment={"WITHOUT_NEW_JOB": "1"}, sabotage=sabotage)
    assert await system.live_workers(1)
    handles = await jobs.new_job.submit_many([{"number": n} for n in range(5)])
    if sabotage:
        assert await system.ended(5)
        assert await system.count("attempt", "state = 'cancelled'") == 5  # the control: they were discarded
        return
    assert await system.eventually(lambda: system.value("select count(*) = 5 from held where reason = 'no-handler'"))
    system.start()
    assert await system.live_workers(2)
    old.stop()

    assert await system.ended(5)
    assert [await handle.result(PATIENCE) for handle in handles] == [0, 1, 2, 3, 4]
    assert {attempt.number for handle in handles for attempt in (await handle.find()).attempts} == {1}
    report = await system.report([handle.id for handle in handles], must_be_drained=True)
    assert report.violations == [], report


async def test_clients_that_repeat_every_call_change_nothing_more(system: System, jobs: Any) -> None:
    system.start()
    assert await system.live_workers(1)
    handles = []
    for number in range(10):
        job = jobs.touch.options(key=f"order-{number}")
        first, again = await job.submit(number=number), await job.submit(number=number)
        assert first == again
        handles.append(first)
    doomed = await jobs.touch.options(key="doomed", delay=60).submit(number=1)
    assert await doomed.cancel() == "cancelled"
    with pytest.raises(RunAlreadyEnded):
        await doomed.cancel()
    assert await jobs.touch.options(key="doomed", delay=60).submit(number=1) == doomed

    assert await system.ended(11)
    report = await system.report([*(handle.id for handle in handles), doomed.id], must_be_drained=True)
    assert report.violations == [], report
    assert len(await system.effects()) == 10


async def test_a_failing_run_is_retried_and_its_attempts_are_all_told(system: System, jobs: Any) -> None:
    system.start()
    assert await system.live_workers(1)
    handle = await jobs.fail_twice.submit()

    assert await handle.result(PATIENCE) == "at last"
    run = await handle.find()
    assert [(attempt.number, attempt.outcome) for attempt in run.attempts] == [
        (1, "failed"),
        (2, "failed"),
        (3, "succeeded"),
    ]


async def test_a_running_run_stops_when_it_is_cancelled(system: System, jobs: Any) -> None:
    system.start()
    assert await system.live_workers(1)
    handle = await jobs.nap.submit(seconds=UNTIL_TOLD)
    assert await system.eventually(lambda: system.started(1))

    assert await handle.cancel(reason="changed my mind") == "running"
    assert await system.ended(1)
    run = await handle.find()
    assert (run.state, [attempt.outcome for attempt in run.attempts]) == ("cancelled", ["cancelled"])


async def test_a_delayed_run_starts_on_time(system: System, jobs: Any) -> None:
    """Not before, and without anybody looking: the promoter sleeps until then."""
    system.start()
    assert await system.live_workers(1)
    handles = [await jobs.touch.options(delay=delay).submit(number=1) for delay in (0.3, 0.8)]

    for handle in handles:
        await handle.result(PATIENCE)
        began_at = await system.value("select at from effect where run_id = $1", handle.id)  # by the database's clock
        assert began_at >= (await handle.find()).due_at


async def test_long_runs_are_not_hoarded_by_one_worker_while_another_idles(system: System, jobs: Any) -> None:
    """A worker that was quick a moment ago has fetched ahead; what it cannot start soon goes to the other."""
    system.start(slots=3)
    assert await system.live_workers(1)
    await jobs.quick.submit_many([{"number": n} for n in range(3_000)])
    await jobs.nap.submit_many([{"seconds": UNTIL_TOLD}] * 6)  # it never is: only another worker can start the rest
    assert await system.eventually(lambda: system.started(3))
    system.start(slots=3)

    assert await system.eventually(lambda: system.started(6))
    pids = await system.connection.fetch("select pid, count(*) as runs from effect where what = 'start' group by pid")
    assert sorted(row["runs"] for row in pids) == [3, 3]


async def test_several_processes_work_under_one_supervisor(system: System, jobs: Any) -> None:
    tree = system.start(processes=2)
    assert await system.live_workers(2)
    handles = await jobs.quick.submit_many([{"number": n} for n in range(100)])

    assert await system.ended(100)
    assert tree.stop() == 0
    report = await system.report([handle.id for handle in handles], must_be_drained=True)
    assert report.violations == [], report
    assert await system.count("worker", "state = 'stopped'") == 2


async def test_a_worker_that_is_asked_to_drain_ends_and_is_not_replaced(system: System, jobs: Any) -> None:
    tree = system.start(processes=2, grace=30.0, slots=2)
    assert await system.live_workers(2)
    handles = await jobs.nap.submit_many([{"seconds": UNTIL_TOLD}] * 4)
    assert await system.eventually(lambda: system.started(4))
    ids = [row["id"] for row in await system.connection.fetch("select id from worker")]
    await jobs.app.workers.drain(ids[0], reason="an upgrade")
    await system.tell_them_to_go_on()

    assert await system.eventually(lambda: system.value("select state = 'stopped' from worker where id = $1", ids[0]))
    assert await system.ended(4)
    assert await system.count("worker") == 2
    report = await system.report([handle.id for handle in handles], must_be_drained=True)
    assert report.violations == [], report

    await jobs.app.workers.drain(ids[1])
    assert tree.process.wait(PATIENCE) == 0  # nobody is left to supervise
    assert await system.count("worker", "state = 'stopped'") == 2


async def test_processes_are_added_while_there_is_work_for_them(system: System, jobs: Any) -> None:
    system.start(autoscale=(1, 3), slots=1)
    assert await system.live_workers(1)
    await jobs.nap.submit_many([{"seconds": UNTIL_TOLD}] * 50)

    assert await system.live_workers(2)  # as long as nothing has finished, a run is taken to last a second


async def test_a_worker_that_closes_slowly_is_not_called_lost(
    system: System, jobs: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its row says that it stopped; the heartbeats of its sibling go on."""
    gate = tmp_path / "closed"
    environment = {"MAY_CLOSE": str(gate)}
    tree = system.start(
        app="tests.system.slow_closing_app:app", processes=2, heartbeat_interval=0.1, environment=environment
    )
    assert await system.live_workers(2)
    await jobs.app.workers.drain(await system.value("select id from worker limit 1"))
    assert await system.eventually(lambda: system.count("worker", "state = 'stopped'"))
    assert await system.beat_again()
    gate.touch()
    assert tree.stop() == 0

    said = "".join(capfd.readouterr())
    assert "slowly closed" in said
    assert "declared lost" not in said
    assert "a worker process ended" not in said

"""A circuit breaker while its target comes and goes and workers are killed: single probes, few attempts."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from .machinery import SHORT_LEASE_TIME

if TYPE_CHECKING:
    from uuid import UUID

    from .machinery import System

RUNS = 30
FLAPS = 2

# Attempts that began after a breaker was known to be open everywhere, while another one of them went on.
OVERLAPS = """
    with call as (
        select run_id, fence, min(at) as started, max(at) as ended from effect
        where what in ('call ada', 'end ada') group by run_id, fence),
    opened as (
        select at + interval '2 seconds' as since,
               coalesce((select min(closed.at) from audit as closed
                         where closed.action = 'breaker.close' and closed.at > audit.at), 'infinity') as until
        from audit where action = 'breaker.open'),
    probe as (select call.* from call join opened on call.started > opened.since and call.started < opened.until)
    select count(*) from probe as one join probe as other
        on (one.run_id, one.fence) <> (other.run_id, other.fence)
        and one.started <= other.started and other.started < one.ended"""


async def test_a_flapping_target_meets_single_probes_and_costs_few_attempts_while_workers_are_killed(
    system: System, jobs: Any
) -> None:
    for _ in range(2):
        system.start(lease_time=SHORT_LEASE_TIME, slots=5)
    assert await system.live_workers(2)
    accepted: list[UUID] = []
    for _ in range(FLAPS):
        await flap(system, jobs, accepted)

    report = await system.report(accepted, must_be_drained=True)
    assert report.violations == [], report
    assert await system.value(OVERLAPS) == 0
    assert (await system.count("slot"), await system.count("held")) == (0, 0)
    assert await system.count("audit", "action = 'breaker.open'") >= FLAPS
    # Of each flap every run is tried at most once before all know, and once when the target is back; and the probes,
    # which a killed worker may have begun twice.
    probes = await system.count("effect", "what = 'call ada'") - 2 * FLAPS * RUNS
    assert probes <= 10 * FLAPS


async def flap(system: System, jobs: Any, accepted: list[UUID]) -> None:
    """The target goes away and comes back; meanwhile workers are killed."""
    await say(system, "away ada")
    done = await system.count("effect", "what = 'end bob'")
    for customer, count in (("ada", RUNS), ("bob", 5)):
        accepted += [handle.id for handle in await jobs.call.submit_many([{"customer": customer}] * count)]
    assert await system.eventually(lambda: is_open(system))
    assert await system.eventually(lambda: bob_is_done(system, done + 5))
    for tree in list(system.trees):  # whoever has the probe is gone
        async with system.replacing(1):
            tree.signal_children(signal.SIGKILL)
    probes = await probes_sent(system)
    assert await system.eventually(lambda: more_probes_than(system, probes + 1))
    assert (await system.report(accepted)).count("probes beside another one") == 0
    await say(system, "back ada")
    assert await system.ended(len(accepted))
    assert await system.eventually(lambda: system.value("select count(*) = 0 from breaker_opening"))


async def say(system: System, what: str) -> None:
    await system.connection.execute("insert into effect (what) values ($1)", what)


async def is_open(system: System) -> bool:
    return await system.count("breaker_opening", "value = 'ada'") == 1


async def bob_is_done(system: System, count: int) -> bool:
    return await system.count("effect", "what = 'end bob'") >= count


async def probes_sent(system: System) -> int:
    return int(await system.value("select coalesce(max(sent), 0) from breaker_probe"))


async def more_probes_than(system: System, count: int) -> bool:
    return await probes_sent(system) > count


async def test_who_counts_no_failures_spends_attempts_on_and_on(system: System, jobs: Any) -> None:
    """The control of the bound on attempts."""
    system.start(sabotage="breakers", slots=5)
    assert await system.live_workers(1)
    await say(system, "away ada")
    handles = await jobs.call.submit_many([{"customer": "ada"}] * RUNS)
    calls = "select count(*) > $1 from effect where what = 'call ada'"
    assert await system.eventually(lambda: system.value(calls, 2 * RUNS + 10))
    await say(system, "back ada")

    assert await system.ended(len(handles))
    assert await system.count("audit", "action = 'breaker.open'") == 0


async def test_who_does_not_wait_for_a_probe_lets_many_out_at_once(system: System, jobs: Any) -> None:
    """The control of single probes."""
    system.start(sabotage="probing", slots=5)
    assert await system.live_workers(1)
    await say(system, "away ada")
    handles = await jobs.call.submit_many([{"customer": "ada"}] * RUNS)
    assert await system.eventually(lambda: is_open(system))
    assert await system.eventually(lambda: system.value(f"{OVERLAPS} having count(*) > 0"))
    await say(system, "back ada")

    assert await system.ended(len(handles))

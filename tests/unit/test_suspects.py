"""Whom a rescuer suspects: those whose beat stood still while it watched, by its own clock and nobody else's."""

from __future__ import annotations

from uuid import UUID

import pytest

from mainspring.keeper.rescuer import LEAST_READS, MOST_LOST_AT_ONCE, READS_PER_LEASE, Rescuer
from mainspring.store.workers import Pulse

from .hands import HandClock

LEASE = 30.0
USUAL = LEASE / READS_PER_LEASE  # between two reads


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def rescuer(clock: HandClock) -> Rescuer:
    return Rescuer(lanes=8, clock=clock)


def pulse(worker: int = 1, beat: int = 0, lease: float = LEASE) -> Pulse:
    return Pulse(UUID(int=worker), beat, lease)


def reads(rescuer: Rescuer, clock: HandClock, *pulses: Pulse, times: int, apart: float = USUAL) -> list[Pulse]:
    """Read the same pulses again and again; answers with the suspects of the last read."""
    suspects: list[Pulse] = []
    for _ in range(times):
        clock.now += apart
        suspects = rescuer.suspects(list(pulses))
    return suspects


def test_a_worker_is_suspected_after_its_lease_time_of_silence(rescuer: Rescuer, clock: HandClock) -> None:
    assert reads(rescuer, clock, pulse(), times=READS_PER_LEASE) == []
    assert reads(rescuer, clock, pulse(), times=1) == [pulse()]


def test_a_worker_that_beats_is_never_suspected(rescuer: Rescuer, clock: HandClock) -> None:
    for beat in range(100):
        assert reads(rescuer, clock, pulse(beat=beat), times=1) == []


def test_one_beat_is_enough_to_begin_anew(rescuer: Rescuer, clock: HandClock) -> None:
    reads(rescuer, clock, pulse(beat=1), times=READS_PER_LEASE)

    assert reads(rescuer, clock, pulse(beat=2), times=READS_PER_LEASE) == []
    assert reads(rescuer, clock, pulse(beat=2), times=1) == [pulse(beat=2)]


@pytest.mark.invariant(6)
def test_a_failed_read_begins_anew(rescuer: Rescuer, clock: HandClock) -> None:
    reads(rescuer, clock, pulse(), times=READS_PER_LEASE)
    rescuer.forget()

    assert reads(rescuer, clock, pulse(), times=READS_PER_LEASE) == []
    assert reads(rescuer, clock, pulse(), times=1) == [pulse()]


@pytest.mark.invariant(6)
def test_our_own_pause_begins_anew(rescuer: Rescuer, clock: HandClock) -> None:
    reads(rescuer, clock, pulse(), times=READS_PER_LEASE)
    clock.now += 3600

    assert reads(rescuer, clock, pulse(), times=READS_PER_LEASE) == []
    assert reads(rescuer, clock, pulse(), times=1) == [pulse()]


@pytest.mark.parametrize(("pause", "counts"), [(LEASE / 2, True), (LEASE / 2 + 0.1, False)])
def test_a_pause_of_half_a_lease_time_still_counts_and_a_longer_one_does_not(
    rescuer: Rescuer, clock: HandClock, pause: float, counts: bool
) -> None:
    reads(rescuer, clock, pulse(), times=READS_PER_LEASE)

    assert bool(reads(rescuer, clock, pulse(), times=1, apart=pause)) is counts


def test_many_reads_at_once_are_one_read(rescuer: Rescuer, clock: HandClock) -> None:
    reads(rescuer, clock, pulse(), times=100, apart=0.01)

    assert reads(rescuer, clock, pulse(), times=LEAST_READS - 2, apart=LEASE / 2 - 1) == []
    assert reads(rescuer, clock, pulse(), times=1, apart=LEASE / 2 - 1) == [pulse()]


def test_each_worker_is_judged_by_its_own_lease_time(rescuer: Rescuer, clock: HandClock) -> None:
    hasty, patient = pulse(worker=1, lease=4.0), pulse(worker=2, lease=60.0)

    assert reads(rescuer, clock, hasty, patient, times=6, apart=1.0) == [hasty]


def test_a_worker_that_is_gone_is_forgotten(rescuer: Rescuer, clock: HandClock) -> None:
    reads(rescuer, clock, pulse(), times=READS_PER_LEASE)
    reads(rescuer, clock, times=1)

    assert reads(rescuer, clock, pulse(), times=1) == []


@pytest.mark.parametrize(("workers", "allowed"), [(1, MOST_LOST_AT_ONCE), (10, MOST_LOST_AT_ONCE), (100, 10)])
def test_only_a_few_are_lost_within_a_lease_time(rescuer: Rescuer, workers: int, allowed: int) -> None:
    assert rescuer._allowance([pulse(worker) for worker in range(workers)]) == allowed


def test_the_allowance_returns_when_a_lease_time_has_passed(rescuer: Rescuer, clock: HandClock) -> None:
    rescuer._last_losses = [clock.now] * MOST_LOST_AT_ONCE
    assert rescuer._allowance([pulse()]) == 0

    clock.now += LEASE
    assert rescuer._allowance([pulse()]) == MOST_LOST_AT_ONCE

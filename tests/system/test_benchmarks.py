"""Benchmarks once through at a small size: real schedulers, workers and a server of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import admission, backlog, backlog_caps, flow, herd, schedules, tenants, throughput
from benchmarks.jobs import COUNTER_VARIABLE
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]


def bench(*arguments: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks", *arguments, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3 * PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


@pytest.fixture(autouse=True)
def own_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark that runs in this process names its counter in the environment: no other one shall find it."""
    monkeypatch.setenv(COUNTER_VARIABLE, "")  # so that it is as it was afterwards
    monkeypatch.delenv(COUNTER_VARIABLE)


def test_schedules_at_a_small_size() -> None:
    numbers = bench("schedules", "--count", "500", "--due", "5", "--seconds", "2")

    assert tuple(numbers) == schedules.FIELDS
    assert (numbers["missing"], numbers["extra"], numbers["early"]) == (0, 0, 0)
    assert all(numbers[each] > 0 for each in schedules.FIELDS if each not in ("missing", "extra", "early"))


def test_a_herd_of_a_few() -> None:
    numbers = bench("herd", "--count", "200", "--rounds", "1")

    assert tuple(numbers) == herd.FIELDS
    assert all(each > 0 for each in numbers.values())


async def test_a_backlog_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims of whole batches, of which each lane has some."""
    monkeypatch.setattr(backlog, "SETTLE", 0.0)

    numbers = await backlog.run(0.1, small=10_000, large=20_000)

    assert tuple(numbers) == backlog.FIELDS
    assert all(each > 0 for each in numbers.values())


@pytest.mark.long
@pytest.mark.timeout(250)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
async def test_admission_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "WARM_UP", 0.1)
    monkeypatch.setattr(throughput, "WARM_UP", 0.1)
    monkeypatch.setattr(admission, "FEW", 200)
    monkeypatch.setattr(admission, "MANY", 2_000)
    monkeypatch.setattr(admission, "RELEASES", 6)
    monkeypatch.setattr(admission, "BACKLOG", 2_000)
    monkeypatch.setattr(admission, "OWN", 10)
    monkeypatch.setattr(admission, "SHARED_ROUNDS", 1)
    monkeypatch.setattr(backlog_caps, "ROUNDS", 4)
    monkeypatch.setattr(tenants, "BACKLOG", 5_000)
    monkeypatch.setattr(tenants, "OWN", 10)
    monkeypatch.setattr(tenants, "ROUNDS", 1)

    numbers = await admission.run(0.3, rounds=1)

    assert tuple(numbers) == admission.FIELDS
    assert (numbers["max_running_per_key"], numbers["max_running_per_strict_key"]) == (1, 1)
    assert (numbers["out_of_order"], numbers["lost"], numbers["duplicated"]) == (0, 0, 0)
    assert 0 < numbers["paced_window_share"] <= 1


async def test_flows_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, count in (("GRAPH", 60), ("LAYERS", 6), ("CHAIN", 10), ("GROUP", 50)):
        monkeypatch.setattr(flow, name, count)

    numbers = await flow.run(PATIENCE, rounds=1)

    assert tuple(sorted(numbers)) == tuple(sorted(flow.FIELDS))
    assert (numbers["released_twice"], numbers["left_behind"]) == (0, 0)

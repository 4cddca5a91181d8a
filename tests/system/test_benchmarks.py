"""Benchmarks once through at a small size: real schedulers, workers and a server of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import backlog, herd, schedules
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]


def bench(*arguments: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks", *arguments, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3 * PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


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

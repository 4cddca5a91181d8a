"""Commands as jobs, in real workers: exit codes, output, killing, limits."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.system.test_poison import POISON_APP, noted, survivors
from tests.waiting import PATIENCE

from mainspring.errors import RunFailed

if TYPE_CHECKING:
    from pathlib import Path

    from .machinery import System

LEASE_TIME = 30.0  # nobody is lost here, however slow the machine is


async def test_a_command_succeeds_with_its_exit_code(system: System, poisons: Any, tmp_path: Path) -> None:
    system.start(app=POISON_APP, lease_time=LEASE_TIME)
    handles = [
        await poisons.end_with.submit(text="a b; $(id)", code=0),
        await poisons.where.submit(path=str(tmp_path / "where")),
        await poisons.write.submit(path=str(tmp_path / "-x y")),
    ]

    assert [await each.result(timeout=PATIENCE) for each in handles] == [{"exit_code": 0}] * 3
    assert (tmp_path / "where").read_text() == "hello /usr\n"
    assert (tmp_path / "-x y").read_text() == ""  # its standard input is empty


@pytest.mark.parametrize(
    ("job", "arguments", "outcome", "code", "said"),
    [
        ("end_with", {"text": "t", "code": 3}, "failed", "command-failed", "sh ended with exit code 3: oops: t"),
        ("missing", {}, "failed", "command-not-started", "there is no program 'no-such-program-at-all' in its PATH"),
        ("nowhere", {}, "failed", "command-not-started", "No such file or directory: '/no/such/folder'"),
        ("crash", {}, "crashed", "process-crashed", "SIGSEGV"),
        ("greedy", {}, "failed", "command-failed", "MemoryError"),
    ],
)
async def test_a_command_that_fails_says_how(
    system: System, poisons: Any, job: str, arguments: dict[str, Any], outcome: str, code: str, said: str
) -> None:
    system.start(app=POISON_APP, lease_time=LEASE_TIME)
    handle = await getattr(poisons, job).submit(**arguments)

    with pytest.raises(RunFailed):
        await handle.result(timeout=PATIENCE)
    (attempt,) = (await handle.find()).attempts
    assert attempt.outcome == outcome
    assert attempt.error["code"] == code
    assert said in attempt.error["message"]


@pytest.mark.parametrize("code", [0, 3])
async def test_what_a_command_prints_is_the_log_of_its_attempt(system: System, poisons: Any, code: int) -> None:
    system.start(app=POISON_APP)
    handle = await poisons.end_with.submit(text="a\tline", code=code)

    assert await system.eventually(lambda: system.count("attempt"))
    run = await handle.find()
    assert run.state == ("dead" if code else "succeeded")
    lines = await handle.logs()
    assert sorted((line.attempt, line.level, line.logger, line.text) for line in lines) == [
        (1, "INFO", "stderr", "oops: a\tline"),
        (1, "INFO", "stdout", "a\tline"),
    ]


async def test_a_cancelled_command_ends_with_its_children(system: System, poisons: Any, tmp_path: Path) -> None:
    system.start(app=POISON_APP, lease_time=LEASE_TIME, cancel_grace=30.0)
    handle = await poisons.sleep.submit(pids=str(tmp_path / "pids"))
    pids = await noted(system, tmp_path / "pids", 1)
    await handle.cancel()

    assert await system.ended(1)
    assert (await handle.find()).state == "cancelled"
    assert survivors(pids) == []


async def test_a_command_that_takes_too_long_is_killed(system: System, poisons: Any, tmp_path: Path) -> None:
    system.start(app=POISON_APP, lease_time=LEASE_TIME, cancel_grace=0.2)
    handle = await poisons.overlong.options(timeout=3).submit(pids=str(tmp_path / "pids"))
    pids = await noted(system, tmp_path / "pids", 1)

    assert await system.eventually(lambda: system.count("dead"))
    (attempt,) = (await handle.find()).attempts
    assert attempt.outcome == "timed_out"
    assert survivors(pids) == []


async def test_a_command_is_submitted_from_the_command_line(system: System, poisons: Any) -> None:
    system.start(app=POISON_APP, lease_time=LEASE_TIME)
    assert await system.live_workers(1)
    arguments = [
        "run",
        "submit",
        "end-with",
        "--arg",
        "text=hi",
        "--arg",
        "code=0",
        "--wait",
        "--timeout",
        f"{PATIENCE:g}s",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "mainspring.cli", *arguments],
        env=os.environ | {"MAINSPRING_DATABASE_URL": system.url},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert '"exit_code": 0' in done.stdout

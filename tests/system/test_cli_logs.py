"""`run logs` and `run watch` as programs and people meet them: real processes, output, exit codes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import timedelta
from typing import Any

import pytest
from tests.waiting import PATIENCE

from mainspring import Context, Mainspring, RetryPolicy
from mainspring.testing import run_until_idle

from .test_cli import HOSTILE, NO_RUN, ROOT, mainspring, refused

ONCE = RetryPolicy(max_attempts=1)


@pytest.fixture
def environment(url: str) -> dict[str, str]:
    return {"MAINSPRING_DATABASE_URL": url}


@pytest.fixture
async def runs(app: Mainspring) -> dict[str, str]:
    """The ids of a run that succeeded, one that failed, and one that waits; all of them hostile."""

    @app.job(retry=ONCE)
    async def speak(context: Context, fails: bool) -> Any:
        context.log(HOSTILE, level="WARNING")
        context.log("second line")
        if fails:
            raise ValueError(HOSTILE)
        return {"said": HOSTILE}

    done, failed = await speak.submit(fails=False), await speak.submit(fails=True)
    await run_until_idle(app)
    waiting = await speak.options(delay=3_600).submit(fails=False)
    return {"done": str(done.id), "failed": str(failed.id), "waiting": str(waiting.id)}


def assert_harmless(text: str) -> None:
    assert not any(ord(character) < 32 and character != "\n" for character in text)
    assert "\x9b" not in text
    assert "\u202e" not in text


def assert_traceback(text: str) -> None:
    assert "Traceback (most recent call last):\n" in text
    assert ", in speak\n" in text or ", in stumble\n" in text


async def test_logs_are_printed_without_what_a_terminal_would_act_upon(
    runs: dict[str, str], environment: dict[str, str]
) -> None:
    answer = await asyncio.to_thread(mainspring, "run", "logs", runs["done"], environment=environment)

    assert answer.code == 0
    assert_harmless(answer.out)
    assert answer.out.startswith("── attempt 1 (fence 1) ──\n")
    assert "WARNING  context  \\x1b[31mred \\x1b]0;title\\x07" in answer.out
    assert answer.out.endswith("context  second line\n")


async def test_below_its_lines_an_attempt_that_failed_has_its_traceback(
    runs: dict[str, str], environment: dict[str, str]
) -> None:
    for words in (("run", "logs", runs["failed"]), ("run", "logs", runs["failed"], "--follow", "--attempt", "1")):
        answer = await asyncio.to_thread(mainspring, *words, environment=environment)

        assert answer.code == 0
        assert_harmless(answer.out)
        assert_traceback(answer.out)
        assert answer.out.index("second line\n") < answer.out.index("Traceback")
        assert all(line.startswith(" ") for line in answer.out.split("Traceback")[1].splitlines()[1:] if line)


async def test_a_run_that_did_not_succeed_is_shown_with_its_last_traceback(
    app: Mainspring, environment: dict[str, str]
) -> None:
    @app.job(retry=RetryPolicy(max_attempts=2, first_delay=timedelta(0)))
    async def stumble(context: Context) -> str:
        raise ConnectionError(f"time {context.attempt} {HOSTILE}" + "\nstate  succeeded" * 100)

    handle = await stumble.submit()
    await run_until_idle(app, timeout=PATIENCE)
    show = ("run", "show", str(handle.id))

    last = (await asyncio.to_thread(mainspring, *show, environment=environment)).out
    first = (await asyncio.to_thread(mainspring, *show, "--attempt", "1", environment=environment)).out
    error = await asyncio.to_thread(refused, *show, "--attempt", "3", environment=environment)

    assert_harmless(last)
    assert "\nattempt 2 failed:\n  … " in last
    assert "\nattempt 1 failed:\n  … " in first
    assert "\nstate  succeeded" not in last, "what an error says cannot pass for what we say"
    assert (error["code"], error["hint"]) == ("attempt-not-found", f"Run {handle.id} has 1, 2.")


async def test_a_run_that_succeeded_is_shown_without_tracebacks(
    runs: dict[str, str], environment: dict[str, str]
) -> None:
    shown = await asyncio.to_thread(mainspring, "run", "show", runs["done"], environment=environment)
    asked = await asyncio.to_thread(mainspring, "run", "show", runs["done"], "--attempt", "1", environment=environment)

    assert "traceback" not in shown.out.lower()
    assert "attempt 1 succeeded; it left no traceback\n" in asked.out


async def test_logs_as_json(runs: dict[str, str], environment: dict[str, str]) -> None:
    answer = await asyncio.to_thread(mainspring, "run", "logs", runs["done"], "-o", "json", environment=environment)

    assert [(line["level"], line["text"]) for line in answer.document] == [
        ("WARNING", HOSTILE),
        ("INFO", "second line"),
    ]
    assert_harmless(answer.out)


async def test_following_logs_of_a_run_that_is_over_ends(runs: dict[str, str], environment: dict[str, str]) -> None:
    words = ("run", "logs", runs["failed"], "--follow", "--attempt", "1", "-o", "json")
    answer = await asyncio.to_thread(mainspring, *words, environment=environment)

    assert answer.code == 0
    assert [json.loads(line)["text"] for line in answer.out.splitlines()] == [HOSTILE, "second line"]


async def test_an_attempt_that_was_not_made_has_no_lines(runs: dict[str, str], environment: dict[str, str]) -> None:
    words = ("run", "logs", runs["done"], "--attempt", "7")
    answer = await asyncio.to_thread(mainspring, *words, environment=environment)

    assert (answer.code, answer.out) == (0, "")
    assert "no lines were logged" in answer.err


async def test_watching_ends_with_the_result_and_says_so_by_its_exit_code(
    runs: dict[str, str], environment: dict[str, str]
) -> None:
    answer = await asyncio.to_thread(mainspring, "run", "watch", runs["done"], environment=environment)

    assert answer.code == 0
    assert_harmless(answer.out)
    assert "second line\nsucceeded after " in answer.out
    assert '"said": "\\u001b[31mred' in answer.out


async def test_watching_a_run_that_failed_exits_with_1(runs: dict[str, str], environment: dict[str, str]) -> None:
    answer = await asyncio.to_thread(mainspring, "run", "watch", runs["failed"], environment=environment)

    assert answer.code == 1
    assert_harmless(answer.out)
    assert answer.out.splitlines()[-1].startswith("dead after ")
    assert_traceback(answer.out)
    assert "ValueError: \\x1b[31mred" in answer.out


async def test_watching_tells_why_earlier_attempts_failed(app: Mainspring, environment: dict[str, str]) -> None:
    @app.job(retry=RetryPolicy(max_attempts=2, first_delay=timedelta(0)))
    async def stumble(context: Context) -> str:
        if context.attempt == 1:
            raise ConnectionError(HOSTILE)
        return "there"

    handle = await stumble.submit()
    await run_until_idle(app, timeout=PATIENCE)
    answer = await asyncio.to_thread(mainspring, "run", "watch", str(handle.id), environment=environment)

    *_, failed, succeeded, result = answer.out.splitlines()
    assert_harmless(answer.out)
    assert_traceback(answer.out)
    assert failed.startswith("attempt 1 failed: ConnectionError: \\x1b[31mred")
    assert succeeded.startswith("succeeded after ")
    assert result == '"there"'


async def test_watching_as_json_is_one_document_a_line(runs: dict[str, str], environment: dict[str, str]) -> None:
    answer = await asyncio.to_thread(mainspring, "run", "watch", runs["done"], "-o", "json", environment=environment)

    (document,) = [json.loads(line) for line in answer.out.splitlines()]
    assert document["run"]["state"] == "succeeded"
    assert [line["text"] for line in document["lines"]] == [HOSTILE, "second line"]


async def test_watching_goes_on_until_the_run_has_ended(
    app: Mainspring, runs: dict[str, str], environment: dict[str, str]
) -> None:
    watching = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mainspring.cli", "run", "watch", runs["waiting"]),
        cwd=ROOT,
        env=os.environ | environment,
        stdout=asyncio.subprocess.PIPE,
    )
    assert watching.stdout is not None
    assert await watching.stdout.readline() == b"scheduled\n"
    await app.runs.cancel(runs["waiting"])

    assert (await watching.stdout.read()).splitlines()[-1].startswith(b"cancelled")
    assert await watching.wait() == 1


@pytest.mark.parametrize("command", ["logs", "watch"])
async def test_a_run_that_is_not_there_is_refused(environment: dict[str, str], command: str) -> None:
    error = await asyncio.to_thread(refused, "run", command, NO_RUN, environment=environment)

    assert error["code"] == "run-not-found"


async def test_a_number_that_no_attempt_has_is_refused(environment: dict[str, str]) -> None:
    error = await asyncio.to_thread(refused, "run", "logs", NO_RUN, "--attempt", "-1", environment=environment)

    assert error["code"] == "invalid-attempt"

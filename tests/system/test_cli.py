"""The command line as programs and people meet it: real processes, their output and their exit codes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.waiting import PATIENCE

from .command_server import Answer, run_command

if TYPE_CHECKING:
    import asyncpg

    from mainspring import Mainspring

ROOT = Path(__file__).parent.parent.parent
NO_RUN = "0199a1b2-c3d4-8005-9f00-0123456789ab"
NOWHERE = "postgresql://127.0.0.1:1/nowhere"

HOSTILE = "\x1b[31mred \x1b]0;title\x07 [bold]markup[/bold] [/] \x9b2J \u202eback\nnew line"


def mainspring(*words: str, cwd: Path = ROOT, environment: dict[str, str] | None = None) -> Answer:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MAINSPRING_")}
    answer = run_command(words, cwd=cwd, environment=inherited | (environment or {}), timeout=PATIENCE)
    assert not any(line.startswith("Traceback") for line in answer.err.splitlines()), answer.err
    return answer


def refused(*words: str, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """The error of a command that is refused: exit code 1, nothing on stdout."""
    answer = mainspring(*words, "-o", "json", environment=environment)
    assert (answer.code, answer.out) == (1, ""), answer
    return answer.error


@pytest.fixture
async def greet(app: Mainspring) -> str:
    """The id of a waiting run of a job named greet, which the database knows from now on."""

    @app.job
    async def greet(name: str) -> str:
        return name

    return str((await greet.options(tags=[HOSTILE], delay=3600).submit(HOSTILE)).id)


# ── help and usage ──────────────────────────────────────────────────────────────────────────────────────────


def test_help_has_examples_and_needs_no_database_driver() -> None:
    code = "import sys; from mainspring.cli.__main__ import run; run(['--help']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "mainspring run submit greet --arg name=Ada" in done.stdout
    assert not {"'asyncpg'", "'uvloop'", "'structlog'", "'asyncio'"} & set(done.stdout.replace(",", " ").split())


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert mainspring("--version").out == f"{version('mainspring')}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["frobnicate"], 'Unknown command "frobnicate"'),
        (["run", "submti"], 'Did you mean "submit"?'),
        (["run", "submit"], "JOB is missing."),
        (["run", "submit", "greet", "name=Ada"], "There is no place for 'name=Ada' here. Did you mean --arg name=Ada?"),
        (["up", "shop:app"], "--app is missing, and there is no place for 'shop:app'."),
        (["up", "--app"], "--app requires an argument"),
        (["run", "show", NO_RUN, "--colour"], "Unknown option: --colour"),
        (["worker", "--app", "a:b", "--slots", "many"], "--slots is 'many'; it must be a whole number"),
        (["limit", "set", "1.5", "--job", "bill"], "MOST is '1.5'; it must be a whole number"),
        (["doctor", "-o", "yaml"], 'Invalid value "yaml" for -o'),
    ],
)
def test_a_command_line_that_is_not_understood_exits_with_2(words: list[str], message: str) -> None:
    answer = mainspring(*words)

    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err
    assert answer.err.startswith("error: ")
    assert "hint: See: mainspring" in answer.err


def test_usage_errors_are_json_too_if_asked() -> None:
    answer = mainspring("-o", "json", "run", "submti")

    assert answer.code == 2
    assert (answer.error["code"], answer.error["hint"]) == ("usage", "See: mainspring run --help")


# ── what is refused, before any database is asked ───────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["run", "submit", "greet", "--delay", "5 minutes"], "invalid-delay"),
        (["run", "submit", "greet", "--delay", "9" * 400 + "d"], "invalid-delay"),
        (["run", "submit", "greet", "--max-age", "0s"], "invalid-max-age"),
        (["run", "submit", "greet", "--attempt-timeout", "0s"], "invalid-timeout"),
        (["run", "submit", "greet", "--attempt-timeout", "soon"], "invalid-attempt-timeout"),
        (["run", "submit", "greet", "--run-timeout", "99999d"], "invalid-run-timeout"),
        (["run", "submit", "greet", "--start-within", "0s"], "invalid-start-within"),
        (["run", "submit", "greet", "--retry", "often"], "invalid-retry"),
        (["run", "submit", "greet", "--retry", "max_attempts=1,max_attempts=2"], "invalid-retry"),
        (["run", "submit", "greet", "--retry", "colour=blue"], "invalid-retry"),
        (["run", "submit", "greet", "--retry", "max_attempts=many"], "invalid-retry-policy"),
        (["run", "submit", "greet", "--retry", "first_delay=5"], "invalid-retry"),
        (["run", "submit", "greet", "--retry", "jitter=some"], "invalid-retry-policy"),
        (["run", "submit", "greet", "--at", "tomorrow"], "invalid-at"),
        (["run", "submit", "greet", "--at", "2026-12-24T18:00:00"], "invalid-at"),
        (["run", "submit", "greet", "--at", "2026-12-24T18:00:00Z", "--delay", "1s"], "at-and-delay"),
        (["run", "submit", "greet", "--payload", '{"name"'], "payload-not-json"),
        (["run", "submit", "greet", "--payload", "[" * 5000], "payload-not-json"),
        (["run", "submit", "greet", "--payload", "[1]"], "invalid-payload"),
        (["run", "submit", "greet", "--payload", "{}", "--arg", "name=Ada"], "payload-and-arg"),
        (["run", "submit", "greet", "--arg", "name"], "invalid-arg"),
        (["run", "submit", "greet", "--arg", "name=Ada", "--arg", "name=Bob"], "invalid-arg"),
        (["run", "submit", "greet", "--priority", "10"], "invalid-priority"),
        (["run", "submit", "greet", "--queue", "no way"], "invalid-queue"),
        (["run", "submit", "greet", "--app", "nowhere:app"], "app-not-found"),
        (["worker", "--app", "examples.hello"], "app-not-found"),
        (["worker", "--app", "examples.hello:ap"], "app-not-found"),
        (["worker", "--app", "examples.hello:EVERY"], "app-not-found"),
        (["worker", "--app", "examples.hello:app", "--slots", "0"], "invalid-slots"),
        (["worker", "--app", "examples.hello:app", "--grace", "soon"], "invalid-grace"),
        (["up", "--app", "examples.hello:app", "--port", "65536"], "invalid-port"),
        (["up", "--app", "examples.hello:app", "--port", "5432"], "invalid-port"),
        (["doctor", "--data-dir", "somewhere"], "url-and-data-dir"),
    ],
)
def test_bad_input_is_refused_with_its_code(words: list[str], code: str) -> None:
    assert refused(*words, "--database-url", NOWHERE)["code"] == code


def test_an_error_has_a_message_a_code_and_a_hint_for_people() -> None:
    answer = mainspring("run", "show", "nonsense", "--database-url", NOWHERE)
    assert answer.err.splitlines()[0].startswith("error: PostgreSQL cannot be reached: ")

    answer = mainspring("worker", "--app", "examples.hello:ap")
    assert answer.err == (
        "error: The application 'examples.hello:ap' cannot be loaded: examples.hello has no attribute 'ap'."
        " [app-not-found]\nhint: Did you mean 'app'?\n"
    )


# ── databases that do not serve ─────────────────────────────────────────────────────────────────────────────


def test_bytes_that_are_no_text_are_refused_without_a_traceback() -> None:
    answer = mainspring("run", "\udcff", "-o", "json")
    assert (answer.code, answer.error["code"]) == (2, "usage")


def test_a_database_that_cannot_be_reached() -> None:
    environment = {"MAINSPRING_DATABASE_URL": NOWHERE}
    for words in (["run", "show", NO_RUN], ["migrate"], ["worker", "list"]):
        assert refused(*words, environment=environment)["code"] == "database-unreachable"

    answer = mainspring("doctor", "-o", "json", environment=environment)
    assert answer.code == 1
    assert [finding["check"] for finding in answer.document["findings"]] == ["connection"]


async def test_a_database_that_accepts_no_writes(
    url: str, greet: str, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    name = await connection.fetchval("select current_database()")
    await connection.execute(f"alter database {name} set default_transaction_read_only = on")

    assert refused("run", "submit", "greet", "--database-url", url)["code"] == "database-read-only"
    assert refused("migrate", "--database-url", url)["code"] == "database-read-only"
    assert mainspring("run", "show", greet, "--database-url", url).code == 0
    answer = mainspring("doctor", "-o", "json", "--database-url", url)
    assert answer.code == 1
    assert {"check": "writable", "level": "problem"}.items() <= answer.document["findings"][1].items()


async def test_a_database_without_our_schema(url: str, connection: asyncpg.Connection[asyncpg.Record]) -> None:
    await connection.execute("drop schema mainspring cascade")

    assert refused("worker", "list", "--database-url", url)["code"] == "schema-missing"
    dry = mainspring("migrate", "--dry-run", "-o", "json", "--database-url", url).document
    assert dry["pending"][0] == {"version": 1, "name": "create_jobs_and_runs"}
    assert mainspring("migrate", "-o", "json", "--database-url", url).document["applied"] == dry["pending"]
    assert mainspring("migrate", "--database-url", url).out.startswith("up to date: ")


def test_a_directory_that_cannot_be_written() -> None:
    assert refused("worker", "list", "--data-dir", "/proc/nowhere")["code"] == "embedded-directory-not-writable"


def test_a_port_that_is_taken(shared_directory: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        directory = str(shared_directory / f"up-{uuid4().hex[:8]}")
        words = ["up", "--app", "examples.hello:app", "--port", port, "--data-dir", directory]
        assert refused(*words)["code"] == "embedded-port-taken"


# ── runs ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_unknown_names_are_answered_with_the_closest_known_one(url: str, greet: str) -> None:
    error = refused("run", "submit", "gret", "--database-url", url)
    assert (error["code"], error["hint"]) == ("job-not-found", "Did you mean 'greet'?")

    error = refused("run", "submit", "greet", "--queue", "defualt", "--database-url", url)
    assert (error["code"], error["hint"]) == ("queue-not-found", "Did you mean 'default'?")

    assert refused("run", "show", "nonsense", "--database-url", url)["code"] == "invalid-run-id"
    assert refused("run", "show", NO_RUN, "--database-url", url)["code"] == "run-not-found"
    assert refused("run", "cancel", NO_RUN, "--database-url", url)["code"] == "run-not-found"


async def test_a_run_from_submission_to_cancellation(url: str, greet: str) -> None:
    words = ["--arg", "name=Ada", "--arg", "count=3", "--tag", "x", "--key", "k", "--priority", "1", "--delay", "2h"]
    first = mainspring("run", "submit", "greet", *words, "--database-url", url)
    again = mainspring("run", "submit", "greet", *words, "-o", "json", "--database-url", url)
    run_id = first.out.strip()
    assert again.document == {"id": run_id, "is_new": False}
    assert "an earlier run" not in first.err
    plain = mainspring("run", "submit", "greet", *words, "--database-url", url)
    assert (plain.out.strip(), f"an earlier run answers: {run_id}" in plain.err) == (run_id, True)

    run = mainspring("-o", "json", "run", "show", run_id, "--database-url", url).document
    assert (run["job"], run["payload"]) == ("greet", {"name": "Ada", "count": 3})
    assert (run["state"], run["priority"], run["tags"]) == ("scheduled", 1, ["x"])

    assert mainspring("run", "cancel", run_id, "--reason", "enough", "--database-url", url).out == "cancelled\n"
    assert refused("run", "cancel", run_id, "--database-url", url)["code"] == "run-already-ended"
    shown = mainspring("run", "show", run_id, "--database-url", url)
    assert "state      cancelled\n" in shown.out
    assert "cancelled: enough" in shown.out


async def test_the_policies_of_a_run_are_given_and_shown(url: str, greet: str) -> None:
    database = ["--database-url", url]
    policy = "max_attempts=3,back_off=linear,first_delay=5s,cap=1m,jitter=full,retry_on=OSError+httpx.HTTPError"
    limits = ["--attempt-timeout", "30s", "--run-timeout", "2m", "--start-within", "1m", "--max-age", "1h"]

    run_id = mainspring("run", "submit", "greet", "--retry", policy, *limits, *database).out.strip()

    run = mainspring("run", "show", run_id, *database, "-o", "json").document
    assert run["overrides"]["timeout"] == "PT30S"
    assert run["overrides"]["run_timeout"] == "PT120S"
    assert run["overrides"]["retry"] == {
        "max_attempts": 3,
        "back_off": "linear",
        "first_delay": "PT5S",
        "factor": 2.0,
        "cap": "PT60S",
        "jitter": "full",
        "retry_on": ["OSError", "httpx.HTTPError"],
        "never_on": [],
    }
    due, expires, until = (datetime.fromisoformat(run[name]) for name in ("due_at", "expires_at", "retry_until"))
    assert (expires - due, until - due) == (timedelta(minutes=1), timedelta(hours=1))
    shown = mainspring("run", "show", run_id, *database).out
    assert '"PT30S"' in shown
    assert '"jitter":"full"' in shown


async def test_what_a_job_supplied_cannot_steer_the_terminal(url: str, greet: str) -> None:
    for words in (["run", "show", greet], ["run", "show", greet, "-o", "json"]):
        out = mainspring(*words, "--database-url", url).out
        assert not set("\x1b\x07\x9b\u202e") & set(out)
        assert "[bold]markup[/bold]" in out

    assert mainspring("run", "show", greet, "-o", "json", "--database-url", url).document["tags"] == [HOSTILE]
    assert "\x1b" not in mainspring("run", "submit", HOSTILE, "--database-url", url).err


async def test_arguments_are_checked_through_the_application_if_it_is_given(url: str) -> None:
    words = ["run", "submit", "greet", "--app", "examples.hello:app", "--database-url", url]
    assert refused(*words, "--arg", "name=3")["code"] == "invalid-arguments"
    assert refused(*words)["code"] == "invalid-arguments"
    assert mainspring(*words, "--arg", "name=Ada").code == 0, "and the job is known from then on"
    assert mainspring("run", "submit", "greet", "--arg", "name=Bob", "--database-url", url).code == 0


# ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────

SHOP = """
from mainspring import Mainspring, RetryPolicy

app = Mainspring()


@app.job(queue="sums")
async def add(a: int, b: int) -> int:
    return a + b


@app.job(retry=RetryPolicy(max_attempts=1))
async def fail(text: str) -> None:
    raise ValueError(text)


@app.job
async def chain() -> str:
    return str((await add.submit(20, 22)).id)
"""


async def test_a_worker_executes_what_is_submitted_and_drains(url: str, tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(SHOP)
    command = [sys.executable, "-m", "mainspring.cli", "worker", "--app", "sums:app", "--database-url", url]
    worker = subprocess.Popen(command, cwd=tmp_path)
    try:
        words = ["--app", "sums:app", "--database-url", url]
        answer = mainspring("run", "submit", "add", "--arg", "a=1", "--arg", "b=2", "--wait", *words, cwd=tmp_path)
        assert (answer.code, answer.out) == (0, "3\n")

        words = ["--database-url", url, "-o", "json", "--wait", "--timeout", f"{PATIENCE:g}s"]
        chained = mainspring("run", "submit", "chain", *words).document
        assert mainspring("run", "show", chained["result"], "--database-url", url).code == 0

        answer = mainspring("run", "submit", "fail", "--payload", json.dumps({"text": HOSTILE}), *words)
        assert (answer.code, answer.error["code"]) == (1, "run-failed")
        shown = mainspring("run", "show", answer.error["fields"]["run_id"], "--database-url", url).out
        assert "ValueError: \\x1b[31mred" in shown

        (listed,) = mainspring("worker", "list", "-o", "json", "--database-url", url).document["workers"]
        assert (listed["state"], listed["queues"]) == ("live", ["default", "sums"])
        assert "live" in mainspring("worker", "list", "--database-url", url).out
    finally:
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0
    (listed,) = mainspring("worker", "list", "-o", "json", "--database-url", url).document["workers"]
    assert listed["state"] == "stopped"

"""Lists, dead letters and acts on many runs, as the command line offers them."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import PATIENCE

from mainspring import Mainspring, RetryPolicy, RunFilter
from mainspring.model.lifecycle import State
from mainspring.testing import run_until_idle

from .command_server import Order, command_server
from .test_cli import HOSTILE, NO_RUN, NOWHERE, ROOT, mainspring, refused

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    import asyncpg

OPERATION = "c73d8dcb-b4d9-4d9b-83ed-615f5483f20e"


@dataclass
class Row:
    number: int


class Shop:
    """An application with runs in several states, and the command line on its database."""

    def __init__(self, app: Mainspring, url: str) -> None:
        self.app, self.url = app, url

    async def open(self) -> Shop:
        @self.app.job
        async def sell(n: int = 0) -> int:
            return n

        @self.app.job(queue="bank", retry=RetryPolicy(max_attempts=1, first_delay=timedelta(0)))
        async def pay(amount: int = 1) -> None:
            raise ConnectionError(HOSTILE)

        self.sold = (await sell.submit(1)).id
        self.dead = [handle.id for handle in await pay.submit_many([{"amount": n} for n in range(3)])]
        await run_until_idle(self.app)
        self.waiting = [handle.id for handle in await sell.options(tags=[HOSTILE]).submit_many([{}] * 5)]
        return self

    def run(self, *words: str, environment: dict[str, str] | None = None) -> Any:
        answer = mainspring(*words, "--database-url", self.url, "-o", "json", environment=environment)
        assert answer.code == 0, answer
        return answer.document

    def refused(self, *words: str, environment: dict[str, str] | None = None) -> Any:
        return refused(*words, "--database-url", self.url, environment=environment)

    def says(self, *words: str) -> str:
        answer = mainspring(*words, "--database-url", self.url)
        assert answer.code == 0, answer
        assert "\x1b" not in answer.out + answer.err
        return answer.out

    async def states(self, run_ids: list[UUID]) -> set[State]:
        return {(await self.app.runs.find(run_id)).state for run_id in run_ids}


@pytest.fixture
async def shop(app: Mainspring, url: str) -> Shop:
    return await Shop(app, url).open()


# ── lists ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_runs_are_listed_and_hostile_text_stays_text(shop: Shop) -> None:
    page = shop.run("run", "list", "--limit", "4")
    assert len(page["runs"]) == 4
    rest = shop.run("run", "list", "--cursor", page["cursor"])
    assert {run["id"] for run in [*page["runs"], *rest["runs"]]} == {
        str(each) for each in (shop.sold, *shop.dead, *shop.waiting)
    }
    lines = shop.says("run", "list").splitlines()
    assert len(lines) == 10
    assert lines[0].split() == ["run", "state", "job", "queue", "pri", "tries", "when"]
    assert shop.says("run", "list", "--job", "pay", "--state", "ready") == "No runs match.\n"


async def test_filters_are_given_as_options(shop: Shop) -> None:
    assert len(shop.run("run", "list", "--state", "dead", "--state", "succeeded")["runs"]) == 4
    assert len(shop.run("run", "list", "--queue", "bank", "--since", "1h")["runs"]) == 3
    assert len(shop.run("run", "list", "--error", "RED", "--job", "pay")["runs"]) == 3
    assert shop.run("run", "list", "--until", "1h")["runs"] == []
    assert len(shop.run("run", "list", "--failed", "--since", "9999d")["runs"]) == 3


@pytest.mark.parametrize("columns", [80, 120, 160])
async def test_on_a_terminal_each_line_fits_and_the_id_is_whole(shop: Shop, columns: int) -> None:
    lines = on_a_terminal(columns, "run", "list", "--database-url", shop.url)

    assert all(len(line) <= columns for line in lines), lines
    assert all(any(line.startswith(str(run_id)) for line in lines) for run_id in shop.dead)
    assert any("ConnectionError: \\x1b[31mred" in line for line in lines)


@pytest.mark.parametrize("columns", [80, 120])
async def test_every_list_fits_its_terminal_and_no_heading_is_cut(
    shop: Shop, connection: asyncpg.Connection[asyncpg.Record], columns: int
) -> None:
    await connection.execute(
        "insert into worker (id, host, pid, queues, labels, slots, version, handlers, lease_seconds)"
        " values (gen_random_uuid(), 'a-host-with-a-very-long-name.example.org', 4711, $1, $2, 200, '0', '{}', 60)",
        ["a-queue-with-a-rather-long-name", "bank", "default"],
        ["gpu", "eu"],
    )
    await connection.execute(
        "insert into scheduler (id, host, pid, version, beat_at)"
        " values (gen_random_uuid(), 'a-host-with-a-very-long-name.example.org', 4711, '0', clock_now() + '1 hour')"
    )
    await shop.app.queues.pause("bank")
    await shop.app.operations.start("cancel", RunFilter(jobs=("sell",)), reason="the shop is closed for good")
    for words, first, kept in (
        (("worker", "list"), "worker", ("state", "host", "queues", "slots", "heartbeat")),
        (("queue", "list"), "queue", ("depth", "oldest", "slots", "slots wanted")),
        (("job", "list"), "job", ("ready", "running", "scheduled", "held", "dead")),
        (("operation", "list"), "operation", ("kind", "state", "done", "started", "reason")),
        (("top", "--once"), "queue", ("depth", "oldest", "slots", "slots wanted")),
        (("top", "--once"), "host", ("pid", "lanes")),
    ):
        lines = on_a_terminal(columns, *words, "--database-url", shop.url)
        heading = next(re.split(r"  +", line.strip()) for line in lines if line.startswith(f"{first}  "))

        assert all(len(line) <= columns for line in lines), lines
        assert set(kept) <= set(heading)
        assert "…" not in "".join(heading)


async def test_ids_are_shortened_where_there_is_no_room_and_understood_as_they_are_shown(shop: Shop) -> None:
    operation = await shop.app.operations.start("cancel", RunFilter(jobs=("sell",)), reason="closed " * 20)
    line = on_a_terminal(80, "operation", "list", "--database-url", shop.url)[-1]
    shown = line.split()[0]

    assert (len(shown), str(operation.id).startswith(shown)) == (8, True)
    assert shop.run("operation", "resume", shown)["id"] == str(operation.id)


def on_a_terminal(columns: int, *words: str) -> list[str]:
    """What a command prints on a terminal, without its colours."""
    ours, theirs = pty.openpty()
    order = Order(list(words), str(ROOT), os.environ | {"COLUMNS": str(columns)})
    server = command_server()
    server.start(order, [theirs, theirs, theirs])
    os.close(theirs)
    printed = b""
    try:
        while some := os.read(ours, 65_536):
            printed += some
    except OSError:  # the other side was closed
        pass
    assert server.wait(PATIENCE) == 0, printed
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;]*m", "", printed.decode()).replace("\r", "").splitlines()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["run", "list", "--state", "deaf"], "invalid-state"),
        (["run", "list", "--since", "yesterday"], "invalid-since"),
        (["run", "list", "--until", "2026-12-24T18:00"], "invalid-until"),
        (["run", "cancel"], "no-runs-named"),
        (["run", "cancel", NO_RUN, "--job", "a"], "ids-and-filter"),
        (["run", "rerun", NO_RUN, "--all"], "ids-and-filter"),
        (["run", "change", "--job", "a", "--set-tag", "b"], "change-for-many"),
        (["dead-letter", "purge"], "no-runs-named"),
        (["dead-letter", "requeue", "--all", "--arg", "a=1"], "arguments-for-many"),
        (["run", "rerun", "--all", "--arg", "a=1"], "arguments-for-many"),
        (["run", "cancel", NO_RUN, "--dry-run"], "dry-run-of-ids"),
        (["run", "rerun", NO_RUN, "--dry-run"], "dry-run-of-ids"),
        (["run", "change", NO_RUN, "--priority", "1", "--dry-run"], "dry-run-of-ids"),
        (["dead-letter", "purge", NO_RUN, "--dry-run"], "dry-run-of-ids"),
        (["dead-letter", "requeue", NO_RUN, NO_RUN, "--dry-run"], "dry-run-of-ids"),
    ],
)
def test_bad_choices_are_refused_before_any_database_is_asked(words: list[str], code: str) -> None:
    assert refused(*words, "--database-url", NOWHERE)["code"] == code


async def test_what_is_not_there_is_refused_with_its_code(shop: Shop) -> None:
    assert shop.refused("run", "list", "--job", "sel")["hint"] == "Did you mean 'sell'?"
    assert shop.refused("run", "list", "--since", "yesterday")["hint"].startswith("Write 2h for two hours ago, 2026-")
    assert shop.refused("run", "list", "--cursor", "x")["code"] == "invalid-cursor"
    assert shop.refused("run", "list", "--limit", "0")["code"] == "invalid-limit"
    assert shop.refused("job", "show", "nobody")["code"] == "job-not-found"
    assert shop.refused("operation", "resume", OPERATION)["code"] == "operation-not-found"
    assert shop.refused("operation", "resume", "x")["code"] == "invalid-operation-id"
    assert shop.refused("run", "rerun", str(shop.waiting[0]))["code"] == "run-not-ended"
    assert shop.refused("dead-letter", "purge", str(shop.sold))["code"] == "run-not-dead"


async def test_jobs_are_listed_with_their_runs_by_state(shop: Shop) -> None:
    pay, sell = shop.run("job", "list")["jobs"]

    assert (pay["name"], pay["version"], pay["queue"], pay["counts"]["dead"]) == ("pay", 1, "bank", 3)
    assert (sell["counts"]["ready"], sell["is_more"]) == (5, False)
    shown = shop.run("job", "show", "pay", "--runs", "2")
    assert (shown["job"]["definition"]["retry"]["max_attempts"], len(shown["runs"])) == (1, 2)
    assert "pay" in shop.says("job", "list")
    assert "3 dead" in shop.says("job", "show", "pay")


async def test_a_job_shows_how_its_runs_share_calls(shop: Shop) -> None:
    @shop.app.job(chunk=100, chunk_wait=timedelta(seconds=0.5))
    async def store(rows: list[Row]) -> None: ...

    await store.submit(Row(7))

    assert shop.run("job", "show", "store")["job"]["definition"]["chunk"] == 100
    lines = [line.split() for line in shop.says("job", "show", "store").splitlines()]
    assert ["chunk", "100"] in lines
    assert ["chunk_wait", "PT0.5S"] in lines
    assert "chunk" not in shop.says("job", "show", "pay")


# ── dead letters ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_dead_letters_are_listed_shown_and_requeued_by_id(shop: Shop) -> None:
    first, second, third = map(str, shop.dead)
    listed = shop.run("dead-letter", "list")["runs"]
    assert {run["id"] for run in listed} == {first, second, third}
    assert mainspring("dead-letter", "list", "--state", "ready").code == 2, "their state is no choice"
    shown = shop.run("dead-letter", "show", first)
    assert (shown["attempts"][0]["error"]["type"], shown["payload"]) == ("ConnectionError", {"amount": 0})

    assert shop.run("dead-letter", "requeue", first, second, "--reason", "mended")["done"] == [first, second]
    again = mainspring("dead-letter", "requeue", first, third, "--database-url", shop.url, "-o", "json")

    assert (again.code, again.document) == (1, {"done": [third], "skipped": [first]})
    assert await shop.states(shop.dead) == {State.READY}


async def test_a_dead_letter_gets_other_arguments(shop: Shop) -> None:
    first, second, _ = map(str, shop.dead)
    editor = {"EDITOR": "sed -i s/1/7/"}

    shop.run("dead-letter", "requeue", first, "--arg", "amount=5")
    shop.run("dead-letter", "requeue", second, "--edit", environment=editor)

    assert (await shop.app.runs.find(first)).payload == {"amount": 5}
    assert (await shop.app.runs.find(second)).payload == {"amount": 7}


async def test_dead_letters_are_purged_by_a_filter_once_it_is_confirmed(shop: Shop) -> None:
    words = ("dead-letter", "purge", "--job", "pay", "--error", "red")

    assert shop.refused(*words)["code"] == "not-confirmed"
    assert shop.run(*words, "--dry-run") == {"runs": 3, "is_exact": True}
    assert await shop.states(shop.dead) == {State.DEAD}
    operation = shop.run(*words, "--yes", "--reason", "hopeless")

    assert (operation["kind"], operation["done"], operation["expected"]) == ("purge", 3, 3)
    assert await shop.states(shop.dead) == {State.CANCELLED}
    assert shop.says(*words) == "0 runs\n"


# ── many runs ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_many_runs_are_changed_and_cancelled(shop: Shop) -> None:
    assert (
        shop.says("run", "change", "--job", "sell", "--priority", "1", "--to-queue", "bank", "--yes") == "5 changed\n"
    )
    run = await shop.app.runs.find(shop.waiting[0])
    assert (run.priority, run.queue) == (1, "bank")

    assert shop.says("run", "cancel", "--all", "--yes", "--reason", "closed") == "5 cancelled\n"
    assert await shop.states(shop.waiting) == {State.CANCELLED}
    kinds = [each["kind"] for each in shop.run("operation", "list")["operations"]]
    assert kinds == ["cancel", "change"]
    assert "closed" in shop.says("operation", "list")


async def test_an_operation_that_was_only_started_is_resumed_by_its_id(shop: Shop) -> None:
    operation = await shop.app.operations.start("cancel", RunFilter(jobs=("sell",)))

    document = shop.run("operation", "resume", str(operation.id))

    assert (document["done"], document["ended_at"] is not None) == (5, True)
    assert shop.run("operation", "resume", str(operation.id))["done"] == 5, "resuming what is over changes nothing"


# ── single runs ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_that_succeeded_is_run_again_as_another(shop: Shop) -> None:
    document = shop.run("run", "rerun", str(shop.sold), "--arg", "n=3")

    rerun = await shop.app.runs.find(document["id"])
    assert document["rerun_of"] == str(rerun.rerun_of) == str(shop.sold)
    assert (rerun.state, rerun.payload) == (State.READY, {"n": 3})
    assert f"rerun of   {shop.sold}" in shop.says("run", "show", document["id"])


async def test_a_waiting_run_is_changed_by_options_or_in_the_editor(shop: Shop) -> None:
    run_id = str(shop.waiting[0])

    words = ("run", "change", run_id, "--priority", "2", "--set-tag", "late", "--at", "2090-01-01T00:00:00Z")
    assert shop.run(*words) == {"id": run_id, "state": "scheduled", "revision": 1}
    shop.run("run", "change", run_id, environment={"EDITOR": f"{sys.executable} -c 'import sys; {EDIT}'"})

    run = await shop.app.runs.find(run_id)
    assert (run.priority, run.tags, run.payload) == (2, ["late"], {"n": 42})
    assert shop.refused("run", "change", run_id, environment={"EDITOR": "false"})["code"] == "editor-failed"
    assert shop.refused("run", "change", run_id, environment={"EDITOR": "/no/editor"})["code"] == "editor-failed"
    assert shop.refused("run", "change", run_id, environment={"EDITOR": "true"})["code"] == "nothing-to-change"
    bad = {"EDITOR": f"{sys.executable} -c 'import sys; open(sys.argv[1], chr(119)).write(chr(91))'"}
    assert shop.refused("run", "change", run_id, environment=bad)["code"] == "payload-not-json"


async def test_a_change_is_refused_if_someone_else_changed_the_run_meanwhile(shop: Shop, tmp_path: Path) -> None:
    run_id = str(shop.waiting[0])
    editor = tmp_path / "editor.py"
    words = [
        sys.executable,
        "-m",
        "mainspring.cli",
        "run",
        "change",
        run_id,
        "--arg",
        "n=7",
        "--database-url",
        shop.url,
    ]
    editor.write_text(f"import subprocess, sys\nsubprocess.run({words!r}, check=True, stdout=2)\n{EDIT}\n")

    refusal = shop.refused("run", "change", run_id, environment={"EDITOR": f"{sys.executable} {editor}"})

    assert (refusal["code"], refusal["fields"]) == ("revision-conflict", {"revision": 1})
    assert (await shop.app.runs.find(run_id)).payload == {"n": 7}
    assert shop.refused("run", "change", run_id, "--edit", "--arg", "n=1")["code"] == "edit-and-arguments"


EDIT = "open(sys.argv[1], chr(119)).write(chr(123) + chr(34) + chr(110) + chr(34) + chr(58) + str(42) + chr(125))"


# ── completion ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_knows_the_commands_and_their_options(shell: str) -> None:
    script = mainspring("completion", shell).out

    assert {"dead-letter", "requeue", "cursor"} <= set(re.findall(r"[\w-]+", script.replace("--", " ")))


def test_a_completion_script_for_bash_is_understood_by_bash() -> None:
    script = mainspring("completion", "bash").out
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

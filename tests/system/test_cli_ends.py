"""Ways in which the program ends early: nobody reads on, nobody can be asked, Ctrl-C, nothing to do."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from .test_cli import ROOT, mainspring, refused

if TYPE_CHECKING:
    from pathlib import Path

    from mainspring import Mainspring

PROGRAM = [sys.executable, "-m", "mainspring.cli"]


@pytest.fixture
async def waiting(app: Mainspring) -> str:
    """The id of a run that waits."""

    @app.job
    async def greet(name: str = "Ada") -> str:
        return name

    return str((await greet.options(delay=3_600).submit()).id)


# ── nobody reads on ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "words",
    [
        ["--version"],
        ["--help"],
        ["completion", "bash"],
        ["schedule", "preview", "every minute", "--count", "1000"],
        ["schedule", "preview", "every minute", "--count", "1000", "-o", "json"],
    ],
)
def test_a_reader_who_has_seen_enough_is_no_error_worth_a_word(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*PROGRAM, *words], cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)

    assert (done.returncode, done.stderr) == (1, "")


# ── Ctrl-C ──────────────────────────────────────────────────────────────────────────────────────────────────

INTERRUPTED = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["mainspring", "run", "list", "--database-url", "postgresql://127.0.0.1:1/nowhere"]
from mainspring.cli.__main__ import main
main()
"""


@pytest.mark.parametrize("name", ["cyclopts", "mainspring.cli.commands", "mainspring.errors", "mainspring.cli.runs"])
def test_an_interrupt_while_the_program_is_imported_ends_it_without_a_word(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED.format(name=name)], capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


async def test_an_interrupt_while_a_command_waits_ends_it_without_a_word(url: str, waiting: str) -> None:
    watching = await asyncio.create_subprocess_exec(
        *(*PROGRAM, "run", "watch", waiting, "--database-url", url),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert watching.stdout is not None
    assert await watching.stdout.readline() == b"scheduled\n"
    watching.send_signal(signal.SIGINT)

    assert (await watching.communicate())[1] == b""
    assert watching.returncode == 130


def test_a_program_in_the_background_goes_on_ignoring_interrupts() -> None:
    code = "from mainspring.cli.interrupt import *; leave_at_once(); raise_interrupts(); print(signal.getsignal(2))"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for what it starts with &
    try:
        done = subprocess.run([sys.executable, "-c", f"import signal; {code}"], capture_output=True, text=True)
    finally:
        signal.signal(signal.SIGINT, before)

    assert done.stdout == f"{signal.SIG_IGN}\n", done.stderr


# ── nobody can be asked, nothing to do ──────────────────────────────────────────────────────────────────────


async def test_a_change_that_nobody_can_type_is_refused(url: str, waiting: str) -> None:
    unset = {"EDITOR": "", "VISUAL": ""}
    error = await asyncio.to_thread(refused, "run", "change", waiting, "--database-url", url, environment=unset)
    assert (error["code"], error["fields"]["field"]) == ("no-editor", "edit")

    reads = {"EDITOR": f"{sys.executable} -c 'import sys; sys.exit(len(sys.stdin.read()) + 3)'"}
    error = await asyncio.to_thread(refused, "run", "change", waiting, "--database-url", url, environment=reads)
    assert error["message"].endswith("failed: it exited with 3."), "it does not wait for input"


async def test_what_an_editor_prints_is_not_in_the_result(url: str, waiting: str) -> None:
    editor = {"EDITOR": f"""{sys.executable} -c 'print("hello"); import sys; open(sys.argv[1], "w").write("{{}} ")'"""}
    words = ("run", "change", waiting, "--edit", "--priority", "1", "-o", "json", "--database-url", url)
    answer = await asyncio.to_thread(mainspring, *words, environment=editor)

    assert (answer.document["revision"], answer.err) == (1, "hello\n")


@pytest.mark.parametrize("command", ["worker", "up"])
def test_an_application_without_jobs_is_refused(tmp_path: Path, command: str) -> None:
    (tmp_path / "bare.py").write_text("from mainspring import Mainspring\napp = Mainspring()\n")
    answer = mainspring(command, "--app", "bare:app", cwd=tmp_path)

    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith(
        "error: The application 'bare:app' has no jobs, so its workers would have nothing to do."
    )
    assert "import those where the application is made" in answer.err


# ── which database ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_database_that_nobody_chose_is_named_with_the_reason(shared_directory: Path) -> None:
    home = shared_directory / f"home-{uuid4().hex[:8]}"
    code = (
        "import pathlib, sys, mainspring.wiring.location as location\n"
        f"location.default_data_directory = lambda: pathlib.Path({str(home)!r})\n"
        "from mainspring.cli.__main__ import run\n"
        "sys.exit(run(sys.argv[1:]))\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAINSPRING_")}
    said, logged = (
        subprocess.run([sys.executable, "-c", code, *words], env=environment, capture_output=True, text=True)
        for words in (["queue", "list"], ["queue", "list", "-o", "json"])
    )

    why = f"Mainspring uses the embedded PostgreSQL in {home}, because neither a URL nor a directory was given. "
    assert (said.returncode, said.stderr.count("\n")) == (0, 1)
    assert said.stderr.startswith(f"• {why}")
    assert json.loads(logged.stderr)["event"].startswith(why)
    chosen = subprocess.run([*PROGRAM, "queue", "list", "--data-dir", str(home)], capture_output=True, text=True)
    assert (chosen.returncode, chosen.stderr) == (0, "")


def test_up_with_a_port_prints_a_url_that_works_and_ends_when_nobody_reads_on(shared_directory: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = str(free.getsockname()[1])
    directory = str(shared_directory / f"up-{uuid4().hex[:8]}")
    words = ["up", "--app", "examples.hello:app", "--port", port, "--data-dir", directory]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*PROGRAM, *words], cwd=ROOT, **pipes) as up:
        assert up.stdout is not None
        assert up.stderr is not None
        line = next(line for line in up.stderr if "postgresql://" in line)
        up.stdout.readline()  # by now its schema is there
        listed = mainspring("queue", "list", "-o", "json", "--database-url", line.split()[-1])
        up.stdout.close()
        up.stderr.read()

    assert (listed.code, up.returncode) == (0, 1)
    assert f"@127.0.0.1:{port}/" in line

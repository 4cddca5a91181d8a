"""Follows a tutorial as a reader would: saves the files it shows, types its commands, compares what it prints.

In a `console` block, `$ ` begins a command and what follows is its output. `mainspring up` has a terminal of its own,
where it goes on until a line `^C`. A Python block is saved under the file name that was mentioned last before it.
Identifiers, instants, spans and people differ from one reader to the next and are not compared; nor is what is seen of
progress, which depends on when one looks, nor why a database is used, which is ours to say here.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from tests.waiting import PATIENCE, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w/-]+\.py)`")
DIFFERENT = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?( UTC)?"), "INSTANT"),
    (re.compile(r"[+]?\b\d+(\.\d+)? (ms|s|min|h)\b"), "SPAN"),
    (re.compile(r"\S+@\S+"), "SOMEONE"),
    (re.compile(r"PostgreSQL( [\d.]+)? in \S+"), "POSTGRESQL"),
    (re.compile(r"\s+"), " "),
)
UNSTEADY = re.compile(r"^…$|\[[█·]+\]|^• Mainspring uses ")
SHOWS = re.compile(r"mainspring (run show|run list|dead-letter list|doctor)\b")


@dataclass(frozen=True)
class Step:
    """One thing a reader does, and what is to be seen then."""

    kind: str  # save, type, start or stop
    what: str
    shown: list[str] = field(default_factory=list)


def steps_of(page: str) -> Iterator[Step]:
    for block in BLOCK.finditer(page):
        if block[1] == "python":
            yield Step(f"save {FILE.findall(page[: block.start()])[-1]}", block[2])
        else:
            yield from _steps_in(block[2])


def _steps_in(console: str) -> Iterator[Step]:
    step: Step | None = None
    for line in console.splitlines():
        if line.startswith("$ ") or line == "^C":
            if step is not None:
                yield step
            command = line.removeprefix("$ ")
            step = Step("stop" if line == "^C" else "start" if command.startswith("mainspring up") else "type", command)
        else:
            assert step is not None, f"{line!r} is the output of nothing"
            step.shown.append(line)
    if step is not None:
        yield step


def plain(line: str) -> str:
    for what, word in DIFFERENT:
        line = what.sub(word, line)
    return line.strip()


def missing(expected: list[str], output: str) -> list[str]:
    """The expected lines that are not in the output, in their order."""
    lines = iter([plain(line) for line in output.splitlines()])
    return [line for line in expected if not UNSTEADY.search(line) and plain(line) not in lines]


class Reader:
    """A folder, a shell in it, and a second terminal."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._log = folder / "second-terminal.log"
        self._environment = dict(environment)
        self._shell = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._up: int | None = None

    def follow(self, page: str) -> None:
        for step in steps_of(page):
            match step.kind.split():
                case ["save", name]:
                    self.type(f"cat > {name} <<'END-OF-FILE'\n{step.what}END-OF-FILE")
                case ["start"]:
                    self.start(step)
                case ["stop"]:
                    self.stop(step)
                case _:
                    self.check(step, *self.look(step))

    def type(self, command: str) -> tuple[int, str]:
        """What the command ends with, and what it prints."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{command}\nprintf '\\n::ended %s\\n' $?\n")
        self._shell.stdin.flush()
        lines: list[str] = []
        for line in self._shell.stdout:
            if line.startswith("::ended "):
                return int(line.split()[1]), "".join(lines)
            lines.append(line)
        raise AssertionError(f"the shell ended in {command!r}: {''.join(lines)}")

    def look(self, step: Step) -> tuple[int, str]:
        """Type it; again, if it only shows something, until what is to be seen has happened."""
        deadline = time.monotonic() + PATIENCE
        while True:
            code, output = self.type(step.what)
            is_over = not SHOWS.match(step.what) or time.monotonic() > deadline
            if is_over or not missing(step.shown, output):
                return code, output

    def check(self, step: Step, code: int, output: str) -> None:
        fails = any(line.startswith(("error:", "dead ")) for line in step.shown)
        assert (code != 0) == fails, f"$ {step.what}\n{output}"
        assert missing(step.shown, output) == [], f"$ {step.what}\n{output}"

    def start(self, step: Step) -> None:
        self._log.touch()
        _, output = self.type(f"{step.what} > {self._log} 2>&1 & echo $!")
        self._up = int(output.split()[-1])
        self._wait_for(step)

    def stop(self, step: Step) -> None:
        assert self._up is not None, "nothing runs in the other terminal"
        os.kill(self._up, signal.SIGINT)
        code, _ = self.type(f"wait {self._up}")
        assert code == 0, self._log.read_text()
        self._up = None
        self._wait_for(step)

    def _wait_for(self, step: Step) -> None:
        eventually(lambda: not missing(step.shown, self._log.read_text()))
        lost = missing(step.shown, self._log.read_text())
        assert not lost, f"$ {step.what}\n{lost} is not in\n{self._log.read_text()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._up is not None:
            os.kill(self._up, signal.SIGINT)
            self.type(f"wait {self._up}")
        self._shell.communicate(timeout=PATIENCE)


def our_environment(data_directory: Path) -> dict[str, str]:
    """A reader's, with the Python of these tests and a database of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "USER") if name in os.environ}
    return kept | {"MAINSPRING_DATA_DIR": str(data_directory), "MAINSPRING_PYTHON": sys.executable}

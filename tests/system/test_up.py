"""`mainspring up` as a newcomer meets it: a real process, the example, and a database that nobody installed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.waiting import PATIENCE

from .machinery import deliver

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent


class Up:
    """A running `mainspring up`, which reports one JSON document a second."""

    def __init__(self, app: str, directory: Path, *words: str, cwd: Path = ROOT) -> None:
        command = [sys.executable, "-m", "mainspring.cli", "up", "--app", app, "-o", "json", *words]
        environment = os.environ | {"MAINSPRING_DATA_DIR": str(directory)}
        environment.pop("MAINSPRING_DATABASE_URL", None)
        self.process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True)

    def until(self, wanted: str, count: int = 1) -> dict[str, Any]:
        """The first report in which so many runs are where they are wanted, or have finished."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.startswith("{"):  # something that a handler printed
                continue
            report: dict[str, Any] = json.loads(line)
            if (sum(report["finished"].values()) if wanted == "finished" else report[wanted]) >= count:
                return report
        raise AssertionError(f"up ended with {self.process.wait()} before {wanted} was {count}")

    def interrupt(self) -> None:
        """As Ctrl-C does."""
        deliver(signal.SIGINT, self.process)

    def exit_code(self) -> int:
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode


@pytest.fixture
def directory(shared_directory: Path) -> Iterator[Path]:
    """A data directory that any account can reach."""
    directory = shared_directory / f"up-{uuid4().hex[:8]}"
    yield directory
    assert not (directory / "postgresql" / "postmaster.pid").exists(), "the server was stopped"


def test_the_example_executes_runs_stops_cleanly_and_goes_on_with_its_data(directory: Path) -> None:
    first = Up("examples.hello:app", directory, "--submit", "tick")
    first.until("finished", 3)
    first.interrupt()
    assert first.exit_code() == 0

    second = Up("examples.hello:app", directory)
    try:
        second.until("finished", 3)  # nobody submitted anything: the chain of ticks goes on
        workers = _workers(directory)
    finally:
        second.interrupt()
        assert second.exit_code() == 0
    assert sorted(worker["state"] for worker in workers) == ["live", "stopped"]


def _workers(directory: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "mainspring.cli", "worker", "list", "-o", "json", "--data-dir", str(directory)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    workers: list[dict[str, Any]] = json.loads(answer.stdout)["workers"]
    return workers


def test_a_second_interrupt_hurries(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "naps.py").write_text(
        "import asyncio\nfrom mainspring import Mainspring\napp = Mainspring()\n"
        "@app.job\nasync def nap() -> None:\n    await asyncio.sleep(600)\n"
    )
    up = Up("naps:app", directory, "--submit", "nap", cwd=tmp_path)
    up.until("running")
    up.interrupt()
    up.until("running")
    up.until("running")  # it was told, and goes on
    up.interrupt()
    assert up.exit_code() == 0

"""Programs that fork after they have submitted, as preloading web servers do: each process goes on for itself."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mainspring.app.blocking import BackgroundLoop

from .machinery import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERYONE = ["parent, before", "parent, meanwhile", "child", "child", "parent, after"]


def run_program(*arguments: str, **environment: str) -> list[str]:
    ended = subprocess.run(
        # Python 3.12 warns of forks beside threads: that is what this is about.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "tests.system.forking_program", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    found: list[str] = json.loads(ended.stdout)
    return found


@pytest.fixture
def data_directory(shared_directory: Path) -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="forking-", dir=shared_directory))
    directory.chmod(0o755)
    yield directory / "data"
    shutil.rmtree(directory)


@pytest.mark.parametrize(("how", "ending"), [("os.fork", "_exit"), ("os.fork", "exit"), ("multiprocessing", "")])
async def test_parent_and_child_submit_to_a_server(url: str, how: str, ending: str) -> None:
    found = await asyncio.to_thread(run_program, how, ending, MAINSPRING_DATABASE_URL=url)

    assert found == EVERYONE


@pytest.mark.parametrize(("how", "ending"), [("os.fork", "exit"), ("multiprocessing", "")])
async def test_parent_and_child_share_the_embedded_server(data_directory: Path, how: str, ending: str) -> None:
    found = await asyncio.to_thread(
        run_program, how, ending, MAINSPRING_DATABASE_URL="", MAINSPRING_DATA_DIR=str(data_directory)
    )

    assert found == EVERYONE


def test_a_child_that_inherits_a_held_lock_does_not_wait_for_it() -> None:
    """A thread of the parent was just starting the loop."""
    background = BackgroundLoop()
    background._lock.acquire()

    background.begin_anew()

    assert background.run(asyncio.sleep(0, "done")) == "done"
    background.stop()

"""What a killed test run leaves behind, and who takes it away."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.system.machinery import is_alive

from mainspring.store.embedded import postmaster
from mainspring.testing.scratch import LOCK, PREFIX, claim_scratch, sweep_scratch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEST = """
def test_that_hangs(mainspring_store):
    print("ready", flush=True)
    input()

def test_that_ends(mainspring_store):
    pass
"""


@pytest.fixture
def root(shared_directory: Path) -> Iterator[Path]:
    """Where the test runs of this test put their data: a folder that the server's account may enter."""
    folder = shared_directory / f"runs-{os.getpid()}"
    folder.mkdir(mode=0o755)
    yield folder
    for directory in folder.glob(f"{PREFIX}*"):
        kill_server(directory)
    sweep_scratch(folder)
    shutil.rmtree(folder)


def pytest_of(project: Path, name: str) -> list[str | Path]:
    (project / "test_hanging.py").write_text(TEST)
    return [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-k", name, project]


@contextmanager
def hanging_run(root: Path, project: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A pytest whose server runs, and its folder."""
    known = set(root.glob(f"{PREFIX}*"))
    command = pytest_of(project, "hangs")
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=project,
        env=os.environ | {"TMPDIR": str(root)},
    ) as run:
        try:
            assert run.stdout is not None
            assert run.stdout.readline() == "ready\n"
            (folder,) = set(root.glob(f"{PREFIX}*")) - known
            yield run, folder
        finally:
            run.kill()


def server_of(folder: Path) -> int:
    found = postmaster.visible_postmaster(folder / "data" / "postgresql")
    assert found is not None
    return found.pid


def kill_server(folder: Path) -> None:
    if (found := postmaster.visible_postmaster(folder / "data" / "postgresql")) is not None:
        os.kill(found.pid, signal.SIGKILL)


def test_what_a_killed_run_left_is_swept_by_the_next_and_a_living_one_is_not(root: Path, tmp_path: Path) -> None:
    with hanging_run(root, tmp_path) as (living, living_folder):
        with hanging_run(root, tmp_path) as (killed, killed_folder):
            killed.send_signal(signal.SIGKILL)
            killed.wait()
            orphan, server = server_of(killed_folder), server_of(living_folder)
            assert is_alive(orphan), "there is something to sweep"

        subprocess.run(pytest_of(tmp_path, "ends"), check=True, cwd=tmp_path, env=os.environ | {"TMPDIR": str(root)})

        assert not killed_folder.exists()
        assert not is_alive(orphan)
        assert server_of(living_folder) == server
        living.communicate("\n")

    assert list(root.iterdir()) == [], "whoever ends in the ordinary way leaves nothing"


def test_a_server_that_does_not_listen_is_swept_too(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postmaster, "IMMEDIATE_SHUTDOWN_PATIENCE", 0.2)
    with hanging_run(root, tmp_path) as (run, folder):
        run.send_signal(signal.SIGKILL)
        run.wait()
        os.kill(server_of(folder), signal.SIGSTOP)

    sweep_scratch(root)

    assert list(root.iterdir()) == []


def test_a_folder_is_swept_when_its_last_user_is_gone(root: Path) -> None:
    folder = root / f"{PREFIX}x"
    first, second = claim_scratch(folder), claim_scratch(folder)

    first.close()
    sweep_scratch(root)
    assert folder.exists()

    second.close()
    sweep_scratch(root)
    assert not folder.exists()


def test_folders_that_are_not_ours_are_left_alone(root: Path) -> None:
    without_lock, other_name, elsewhere = root / f"{PREFIX}old", root / "thesis", root / "elsewhere"
    without_lock.mkdir()
    claim_scratch(other_name).close()
    claim_scratch(elsewhere).close()
    (root / f"{PREFIX}link").symlink_to(elsewhere)

    sweep_scratch(root)

    assert without_lock.exists()
    assert (other_name / LOCK).exists()
    assert (elsewhere / LOCK).exists()

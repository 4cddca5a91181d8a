"""The examples in README run as they stand, by the commands that README gives for them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


SHOP, TRANSACTION = blocks("python")
(CONSOLE,) = blocks("console")


@pytest.fixture
def environment(url: str) -> dict[str, str]:
    """A shell in which `mainspring` and `python` are ours, and the database is fresh."""
    return os.environ | {"MAINSPRING_DATABASE_URL": url, "PATH": PATH}


@pytest.fixture
def shop(tmp_path: Path, environment: dict[str, str]) -> Iterator[Path]:
    """The folder with shop.py, and a worker for it."""
    (tmp_path / "shop.py").write_text(SHOP)
    worker = subprocess.Popen(["mainspring", "worker", "--app", "shop:app"], cwd=tmp_path, env=environment)
    yield tmp_path
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE) == 0


def run(script: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
async def test_the_first_example_runs_and_the_commands_after_it_do_too(shop: Path, environment: dict[str, str]) -> None:
    assert run("python shop.py", shop, environment) == "receipt for order 42 sent to ada@example.org\n"

    script = "\n".join(line.removeprefix("$ ") for line in CONSOLE.splitlines())
    said = run(script.replace("mainspring doctor", "mainspring doctor || true"), shop, environment)

    assert '"result": "receipt for order 8 sent to ada@example.org"' in said
    assert "job        send_receipt (version 1)" in said
    assert "\ncancelled\n" in said
    verdict = said.splitlines()[-1]  # perhaps with warnings of what other tests do to their server
    assert verdict.startswith("1 problem"), "the server of the tests is not durable, and doctor says so"


@pytest.fixture
def embedded(shared_directory: Path) -> dict[str, str]:
    """The same, on the database of those who name none; only its directory is not the usual one."""
    others = {name: value for name, value in os.environ.items() if name != "MAINSPRING_DATABASE_URL"}
    return others | {"PATH": PATH, "MAINSPRING_DATA_DIR": str(shared_directory / f"readme-{uuid4().hex[:8]}")}


def place_an_order(folder: Path, environment: dict[str, str]) -> None:
    (folder / "orders.py").write_text(TRANSACTION)

    assert run("python orders.py", folder, environment) == "placed order 1\n"
    assert "state      ready" in run("mainspring run show $(mainspring run submit send_receipt)", folder, environment)


async def test_the_transactional_example_runs_on_a_server(tmp_path: Path, environment: dict[str, str]) -> None:
    place_an_order(tmp_path, environment)


def test_the_transactional_example_runs_on_the_default_database(tmp_path: Path, embedded: dict[str, str]) -> None:
    place_an_order(tmp_path, embedded)


def test_every_python_block_is_known_to_these_tests() -> None:
    for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        assert "```python" not in (ROOT / name).read_text(encoding="utf-8"), f"{name} has an example that nothing runs"

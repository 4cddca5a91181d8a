"""What one gets by installing Mainspring, without extras and with them."""

from __future__ import annotations

import importlib.metadata
import signal
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.system.environments import built_wheel, installed, surroundings
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.system.environments import Environment

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

SHOP = """
from mainspring import *

app = Mainspring()

@app.job
async def add(a: int, b: int) -> int:
    return a + b

@app.job(isolated=True)
async def add_apart(a: int, b: int) -> int:
    return a + b

async def main() -> None:
    async with app:
        runs = [await job.submit(a=1, b=2) for job in (add, add_apart)]
        print([await run.result(timeout=60) for run in runs])

if __name__ == "__main__":
    import asyncio

    asyncio.run(main())
"""
WORKER = """
import asyncio, sys
from mainspring import wiring
from mainspring.worker.settings import WorkerSettings

sys.exit(asyncio.run(wiring.supervise(wiring.DatabaseLocation.chosen(), "shop:app", WorkerSettings())))
"""
CALENDAR = """
from datetime import date
from mainspring.errors import ExtraMissing
from mainspring.schedule.icalendar import read_calendar

try:
    read_calendar(b"BEGIN:VCALENDAR", name="holidays", since=date(2026, 1, 1))
except ExtraMissing as error:
    print(error.code, error)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return installed(wheel, tmp_path_factory.mktemp("plain"))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "worker.py").write_text(WORKER)
    return tmp_path


@pytest.fixture
async def worker(plain: Environment, shop: Path, url: str) -> AsyncIterator[None]:
    variables = surroundings() | {"MAINSPRING_DATABASE_URL": url}
    process = subprocess.Popen([plain.python, "worker.py"], cwd=shop, env=variables)
    yield
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0


@pytest.mark.usefixtures("worker")
async def test_without_extras_runs_are_submitted_and_executed(plain: Environment, shop: Path, url: str) -> None:
    done = plain.run("shop.py", cwd=shop, MAINSPRING_DATABASE_URL=url)

    assert (done.stdout, done.returncode) == ("[3, 3]\n", 0), done.stderr


def test_without_extras_every_public_name_is_there(plain: Environment, tmp_path: Path) -> None:
    done = plain.run("-c", "from mainspring import *; from mainspring.testing import *", cwd=tmp_path)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [["run", "list"], ["run", "list", "-o", "json"]])
def test_without_extras_the_command_line_says_what_to_install(
    plain: Environment, tmp_path: Path, words: list[str]
) -> None:
    done = plain.run("-m", "mainspring.cli.__main__", *words, cwd=tmp_path)

    assert done.returncode == 1
    assert "extra-missing" in done.stderr
    assert "mainspring[cli]" in done.stderr
    assert len(done.stderr.splitlines()) == (1 if "json" in words else 2)


def test_without_extras_calendar_files_say_what_to_install(plain: Environment, tmp_path: Path) -> None:
    done = plain.run("-c", CALENDAR, cwd=tmp_path)

    assert done.stdout.startswith("extra-missing "), done.stderr
    assert 'pip install "mainspring[icalendar]"' in done.stdout


async def test_with_its_extra_the_command_line_is_there(wheel: Path, tmp_path: Path, url: str) -> None:
    environment = installed(wheel, tmp_path / "cli", "cli")

    done = environment.run("-m", "mainspring.cli.__main__", "run", "list", cwd=tmp_path, MAINSPRING_DATABASE_URL=url)

    assert done.returncode == 0, done.stderr


def test_all_is_every_extra() -> None:
    extras = PROJECT["optional-dependencies"]

    assert extras["all"] == [f"mainspring[{','.join(sorted(extras.keys() - {'all'}))}]"]


def test_every_declared_package_is_one_that_we_test_with() -> None:
    for lines in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        for name in {line.partition(">")[0] for line in lines if not line.startswith("mainspring[")}:
            assert importlib.metadata.version(name)

"""The pytest plugin, in a project of its own, as a user of Mainspring has it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

JOBS = """
from mainspring import Mainspring, RetryPolicy

app = Mainspring("postgresql://nowhere.invalid/production")
tries = 0

@app.job(queue="mail", retry=RetryPolicy(max_attempts=3))
async def send(to: str, urgent: bool = False) -> str:
    global tries
    tries += 1
    if tries < 3:
        raise ConnectionError("not yet")
    return f"sent to {to}"
"""

TESTS = """
import pytest
import shop
from mainspring.testing import assert_not_submitted, assert_submitted, run_until_idle

pytestmark = pytest.mark.anyio

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.parametrize("n", range(3))
async def test_every_test_begins_with_nothing(mainspring_app, n):
    await assert_not_submitted(shop.send)
    await shop.send.options(priority=2, tags=["x"]).submit(to="ada")
    (sent,) = await assert_submitted(shop.send, to="ada", times=1)
    assert (sent.queue, sent.priority, sent.tags) == ("mail", 2, ("x",))

async def test_retries_take_no_time(mainspring_app, mainspring_clock):
    before = mainspring_clock.at
    handle = await shop.send.submit(to="bob")
    assert await run_until_idle(mainspring_app, travel=True) == {"failed": 2, "succeeded": 1}
    assert await handle.result() == "sent to bob"
    assert mainspring_clock.at > before
    await assert_submitted(shop.send, to="bob")

@pytest.fixture
def in_production(monkeypatch):
    monkeypatch.setenv("MAINSPRING_REQUIRE_SERVER", "1")
    monkeypatch.setattr(shop.app, "_url", None)

async def test_that_the_embedded_server_is_forbidden_concerns_no_test(in_production, mainspring_app):
    await shop.send.submit(to="ada")

def test_code_that_is_not_async(mainspring_app):
    shop.send.submit_sync(to="eve")
    mainspring_app.close_sync()

async def test_a_failed_assertion_tells_what_there_is(mainspring_app):
    await shop.send.submit(to="ada", urgent=True)
    with pytest.raises(AssertionError) as caught:
        await assert_submitted(shop.send, to="bob")
    assert str(caught.value).splitlines() == [
        "send should have been submitted at least once with {'to': 'bob'}, and was 0 times. Its submissions:",
        "  (to='ada', urgent=True)  queue=mail  priority=5",
    ]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(JOBS)
    (tmp_path / "test_shop.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmainspring_app = shop:app\nfilterwarnings = error\n")
    return tmp_path


def run_pytest(project: Path, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_project_is_tested_with_the_plugin(project: Path) -> None:
    code, said = run_pytest(project)

    assert code == 0, said
    assert "7 passed" in said


def test_a_project_that_does_not_name_its_application_is_told_how(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\n")
    code, said = run_pytest(project, "-k", "begins")

    assert code != 0
    assert "Say which application is under test" in said


def test_the_plugin_costs_nothing_where_it_is_not_used(project: Path) -> None:
    (project / "test_shop.py").write_text(
        "import sys\n\ndef test_nothing_was_imported():\n    assert 'asyncpg' not in sys.modules\n"
    )

    assert run_pytest(project)[0] == 0

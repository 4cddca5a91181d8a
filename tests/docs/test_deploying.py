"""What the pages on installing and deploying say can be done as they say it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.docs.test_commands import understand, words_of

from mainspring.worker.running import DELIVERY_SECONDS
from mainspring.worker.supervisor import MARGIN_SECONDS

ROOT = Path(__file__).parent.parent.parent
DEPLOY = (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

(UNIT,) = re.findall(r"^```ini\n(.*?)^```$", DEPLOY, re.MULTILINE | re.DOTALL)
(CONTAINERFILE,) = re.findall(r"^```dockerfile\n(.*?)^```$", DEPLOY, re.MULTILINE | re.DOTALL)
IN_UNIT = re.search(r"^ExecStart=/srv/shop/.venv/bin/(.*)$", UNIT, re.MULTILINE)[1]  # type: ignore[index]
IN_CONTAINER = " ".join(json.loads(CONTAINERFILE.rpartition("CMD ")[2]))


def seconds(pattern: str, text: str) -> int:
    return int(re.search(pattern, text)[1])  # type: ignore[index]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "mainspring-worker@.service"
    unit.write_text(UNIT.replace("/srv/shop/.venv/bin/mainspring", sys.executable))

    done = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", "--man=no", unit], capture_output=True, text=True
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("line", [IN_UNIT, IN_CONTAINER])
def test_the_command_of_a_worker_is_understood(line: str) -> None:
    understand(words_of(line))


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (r"TimeoutStopSec=(\d+)s", IN_UNIT),
        (r"--stop-timeout (\d+)", IN_CONTAINER),
        (r"terminationGracePeriodSeconds: (\d+)", IN_CONTAINER),
        (r"stop_grace_period: (\d+)s", IN_CONTAINER),
    ],
)
def test_whoever_stops_a_worker_waits_for_longer_than_it_takes_to_drain(pattern: str, line: str) -> None:
    assert seconds(pattern, DEPLOY) > seconds(r"--grace (\d+)s", line) + DELIVERY_SECONDS + MARGIN_SECONDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_extra_that_a_page_names_is_one(page: Path) -> None:
    named = re.findall(r"mainspring\[([\w,]+)\]", page.read_text(encoding="utf-8"))

    assert not {extra for each in named for extra in each.split(",")} - EXTRAS.keys()

"""What the pages about schedules show is what the program prints, and what they name is understood."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mainspring.schedule.text import parse

ROOT = Path(__file__).parent.parent.parent
HOW_TO, REFERENCE = (
    (ROOT / "docs" / kind / "schedules.md").read_text(encoding="utf-8") for kind in ("how-to", "reference")
)
NOW = datetime(2026, 11, 16, 3, 0, tzinfo=UTC)


def shown_commands() -> list[tuple[str, str]]:
    """Every command of the page, and what it is said to print."""
    blocks = "".join(re.findall(r"^```console\n(.*?)^```$", HOW_TO, re.MULTILINE | re.DOTALL))
    command, *rest = re.split(r"^\$ (.*)\n", blocks, flags=re.MULTILINE)
    assert command == ""
    return list(zip(rest[::2], rest[1::2], strict=True))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the page tells to save."""
    for name, content in re.findall(
        r"Save this as `([\w.]+)`.*?\n\n```\w*\n(.*?)^```$", HOW_TO, re.MULTILINE | re.DOTALL
    ):
        (tmp_path / name).write_text(content)
    return tmp_path


@pytest.mark.parametrize(("command", "output"), shown_commands(), ids=lambda text: text[:60])
def test_a_command_prints_what_the_page_shows(command: str, output: str, folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"{command} 2>&1"], cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )

    assert without_version(done.stdout) == without_version(output)


def without_version(text: str) -> str:
    return re.sub(r"^tzdata \w+$", "tzdata", text, flags=re.MULTILINE)


def schedules_named_by(page: str, section: str) -> list[str]:
    """What stands between backquotes in the tables of a section."""
    text = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [each for row in rows for each in re.findall(r"`([^`]+)`", row.replace("\\|", "|"))]


@pytest.mark.parametrize("text", schedules_named_by(REFERENCE, "Plain English"))
def test_plain_english_of_the_reference_is_understood(text: str) -> None:
    parse(text, now=NOW)


def test_every_form_of_the_reference_is_understood() -> None:
    table = REFERENCE.partition("\n## When\n")[2].partition("\nRound brackets")[0]
    for text in re.findall(r"`([^`]+)`", table.replace("\\|", "|")):
        parse(text, now=NOW)

"""Whoever follows the tutorial sees what it says: every command and every file in it, in order, on a bare machine."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.docs.tutorial import Reader, missing, our_environment, steps_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "docs" / "tutorial").glob("*.md"))


@pytest.fixture
def desk(shared_directory: Path) -> Iterator[Path]:
    """A folder with the project in it and nothing else, where the embedded PostgreSQL's account may go too."""
    # The tutorial bootstraps. As scripts/test has done so before, nothing happens; else it would install into the
    # environment that the tests beside this one are running in.
    checked = subprocess.run([ROOT / "scripts" / "bootstrap", "--check"], capture_output=True, text=True)
    if checked.returncode:
        pytest.skip(checked.stderr)
    folder = Path(tempfile.mkdtemp(prefix="tutorial-", dir=shared_directory))
    folder.chmod(0o755)
    (folder / "mainspring").symlink_to(ROOT)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_can_be_followed(page: Path, desk: Path) -> None:
    with Reader(desk, our_environment(desk / "data")) as reader:
        reader.follow(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("console", ["$ echo hello\ngood-bye\n", "$ false\n", "$ echo error\nerror: no\n"])
def test_a_page_that_says_something_else_is_noticed(console: str, desk: Path) -> None:
    with Reader(desk, our_environment(desk / "data")) as reader, pytest.raises(AssertionError):
        reader.follow(f"```console\n{console}```\n")


def test_what_differs_between_readers_is_not_compared() -> None:
    shown = ["attempt  outcome", "1  failed  35 ms", "…", "by ada@laptop"]

    assert missing(shown, "attempt outcome\n 1 failed  1.2 s\nmore\nby bob@desk\n") == []
    assert missing(shown, "attempt outcome\n 1 succeeded  1.2 s\nby bob@desk\n") == [
        "1  failed  35 ms",
        "by ada@laptop",
    ]


def test_a_reader_saves_types_starts_and_stops() -> None:
    page = "Save as `a.py`:\n```python\n1\n```\n```console\n$ mainspring up\nready\n$ ls\na.py\n^C\n```\n"

    assert [(step.kind, step.shown) for step in steps_of(page)] == [
        ("save a.py", []),
        ("start", ["ready"]),
        ("type", ["a.py"]),
        ("stop", []),
    ]

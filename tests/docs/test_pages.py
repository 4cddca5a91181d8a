"""The pages agree with the code and with each other."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from mainspring.model.lifecycle import MOVES, State

ROOT = Path(__file__).parent.parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def draw_lifecycle() -> Any:
    spec = importlib.util.spec_from_file_location("draw_lifecycle", ROOT / "docs" / "draw_lifecycle.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_drawn_lifecycle_is_current() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")

    assert draw_lifecycle().drawn(page) == page, "run docs/draw_lifecycle.py"


def test_the_drawing_shows_every_state_and_every_verb() -> None:
    diagram = draw_lifecycle().diagram()

    assert not [state for state in State if state not in diagram]
    assert not [move.verb for move in MOVES if move.verb not in diagram]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_points_to_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    files = [
        file for file in re.findall(r"`((?:src|docs|tests|examples|scripts)/[\w./-]+)`", text) if "NNNN" not in file
    ]

    assert not [link for link in links if not (page.parent / link).exists()]
    assert not [file for file in files if not (ROOT / file).exists()]


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md") if page.name != "README.md"]

    assert not [str(page) for page in pages if f"({page})" not in index], "add a line to docs/README.md"


def test_every_word_of_the_lifecycle_is_in_the_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")

    assert not [state for state in State if f"`{state}`" not in text]

"""The invariants of ARCHITECTURE.md: each that belongs to what is built has a test that names it by its number."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MARK = re.compile(r"pytest\.mark\.invariant\(([\d, ]+)\)")
COMING = "°"


def written() -> dict[int, str]:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition("\n## Invariants\n")[2].partition("\n## ")[0]
    return {int(number): words for number, words in re.findall(r"^(\d+)\. (.*)$", section, re.MULTILINE)}


def held() -> set[int]:
    files = (file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    return {int(number) for text in files for numbers in MARK.findall(text) for number in numbers.split(",")}


def test_every_invariant_has_a_test() -> None:
    missing = {number: words for number, words in written().items() if number not in held()}

    assert {number: words for number, words in missing.items() if not words.startswith(COMING)} == {}


def test_a_test_names_an_invariant_that_exists() -> None:
    assert held() <= set(written())
    assert list(written()) == list(range(1, len(written()) + 1))

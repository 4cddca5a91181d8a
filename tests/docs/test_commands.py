"""Every command line in a page or in a help text is one that the program understands. It is read, not run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from cyclopts import CycloptsError

from mainspring.cli.commands import commands

ROOT = Path(__file__).parent.parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
# As a line of its own, with or without a prompt, or inside NAME=$( … ).
LINE = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\$\((mainspring .*)\)|(mainspring [a-z-].*))$", re.MULTILINE)
BLOCK = re.compile(r"^```(?:console|sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def command_lines(page: Path) -> list[str]:
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [one or other for block in blocks for one, other in LINE.findall(block)]


def words_of(line: str) -> list[str]:
    """The words after `mainspring`, up to a comment, a pipe, a file or explanations; `$( … )` stands for an id."""
    plain = re.sub(r"\$\([^)]*\)", "ID", line)
    return shlex.split(re.split(r" \| | >+ | #| {3,}", plain)[0])[1:]


def understand(words: list[str]) -> None:
    _, bound, _ = commands.meta.parse_args(words, exit_on_error=False, print_error=False)
    commands.parse_args(bound.arguments.get("words", ()), exit_on_error=False, print_error=False)


@pytest.mark.parametrize("page", [page for page in PAGES if command_lines(page)], ids=lambda page: page.stem)
def test_the_commands_of_a_page_are_understood(page: Path) -> None:
    for line in command_lines(page):
        understand(words_of(line))


def test_a_command_that_is_none_is_noticed() -> None:
    for line in ("mainspring run shwo ID", "mainspring run list --jbo a", "mainspring run show"):
        with pytest.raises(CycloptsError):
            understand(words_of(line))

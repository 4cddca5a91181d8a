"""Every command line in a page or in a help text is one that the program understands. It is read, not run.

And every command understands a whole number as one, and nothing else.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cyclopts import CycloptsError

from generators.commands import walk
from mainspring.cli.commands import commands
from mainspring.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def places_of_whole_numbers() -> Iterator[tuple[str, ...]]:
    """The beginning of a command line that goes on with a whole number: of each such option of each command."""
    for path, app in walk(commands, ("mainspring",)):
        for argument in app.assemble_argument_collection():
            if re.search(r"\bint\b", str(argument.hint)):
                option = (argument.name,) if argument.name.startswith("-") else ()
                yield (*path[1:], *option)


def test_every_option_that_is_a_whole_number_refuses_what_is_none() -> None:
    """Cyclopts rounds fractions, and reads numbers as Python writes them."""
    places = list(places_of_whole_numbers())
    assert {("limit", "set"), ("limit", "set", "--burst"), ("run", "submit", "--priority")} < set(places)

    for place in places:
        for value in ("1.5", "30.0", "1e3", "0x10", "1_000", " 5", "٣", "", "none"):
            with pytest.raises(InvalidInput, match="must be a whole number") as caught:
                understand([*place, value])
            name = place[-1] if place[-1].startswith("--") else "MOST"
            assert caught.value.message.startswith(f"{name} is '{value}'")
            assert (caught.value.fields["value"], caught.value.fields["rule"]) == (
                f"'{value}'",
                "must be a whole number, in digits",
            )


def test_whole_numbers_are_understood() -> None:
    for value in ("1", "+5", "007"):
        understand(["limit", "set", value, "--job", "send", "--burst", value])

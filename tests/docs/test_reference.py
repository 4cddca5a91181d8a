"""The reference is made from the code, and is what would be made from it now."""

from __future__ import annotations

import re
from functools import cache

import pytest

import mainspring
import mainspring.testing
import make_reference
from generators.commands import walk
from mainspring.cli.__main__ import run
from mainspring.cli.commands import commands

made = cache(make_reference.made)  # when a test asks for it: every test process reads this file


@pytest.mark.parametrize("name", make_reference.PAGES)
def test_a_page_of_the_reference_is_current(name: str) -> None:
    page = make_reference.FOLDER / name

    assert page.exists(), "run docs/make_reference.py"
    assert page.read_text(encoding="utf-8") == made(name), "run docs/make_reference.py"


def test_every_public_name_has_a_section() -> None:
    sections = re.findall(r"^### (\w+)$", made("python.md"), re.MULTILINE)

    assert not {*mainspring.__all__, *mainspring.testing.__all__} - {*sections}


def test_every_command_of_the_reference_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    titles = re.findall(r"^### mainspring (.+)$", made("cli.md"), re.MULTILINE)

    for title in titles:
        assert run([*title.split(), "--help"]) == 0
        assert f"Usage: mainspring {title}" in capsys.readouterr().out
    assert "run submit" in titles


def test_no_two_commands_are_one() -> None:
    """Each is made when it is first used, with what is said about it there: of two in one, the last would decide."""
    made_of = [app for _, app in walk(commands, ("mainspring",))]

    assert len({id(app) for app in made_of}) == len(made_of)


@pytest.mark.parametrize("code", ["job-not-found", "invalid-slots", "payload-too-large", "schema-missing", "snoozed"])
def test_codes_are_found_wherever_they_are_given(code: str) -> None:
    """As a class's own, through helpers, put together from parts, by name, and by steering."""
    assert f"`{code}`" in made("errors.md")

"""Markdown, in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, or nothing if it would be empty."""
    lines = [f"| {' | '.join(_cell(each) for each in row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}", *lines])


def fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def joined(*parts: str) -> str:
    """Parts that are there, each a paragraph of its own."""
    return "\n\n".join(part.strip("\n") for part in parts if part.strip())


def unwrapped(text: str) -> str:
    """A paragraph on one line: how long lines are is the business of whoever wrote them."""
    return " ".join(text.split())


def _cell(text: str) -> str:
    return unwrapped(text).replace("|", "\\|")

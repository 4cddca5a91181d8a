"""Reads SQL just well enough to say which tables a statement touches, where, and how it names the lane.

A statement is cut into *levels*: each parenthesis that holds a query, each arm of a union, and what is left of the
whole. At each level, tables follow fixed words (`from`, `join`, `insert into` …).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mainspring.store.distribute import MOVING, SHARED

from .routines import inside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mainspring.store.statements import Statement

_TOKEN = re.compile(
    r"""'(?:[^']|'')*'                              # text
      | [$a-z_\d][\w.]*(?:::[a-z]+(?:\[\])?)?       # a word, number or parameter, with its type
      | [(),]
      | [^\s\w(),'$]+                               # an operator
    """,
    re.VERBOSE,
)
_QUERY = ("select", "with", "insert", "update", "delete")
WRITES = ("insert", "update", "delete")

Words = tuple[str, ...]
Nested = list["str | Nested"]


@dataclass(frozen=True)
class Touch:
    """One table at one level of a statement."""

    how: str  # from, join, using, insert, update, delete
    table: str
    alias: str
    level: Words
    at: int  # where the table stands in its level


def moves_of(statement: Statement) -> list[str]:
    header = re.search(r"^-- Moves: ([a-z_, ]+)\.", statement.source, re.MULTILINE)
    return header[1].split(", ") if header else []


def is_hot(statement: Statement) -> bool:
    return re.search(r"^--.*\bHot\.", statement.source, re.MULTILINE) is not None


def indexes_of(statement: Statement) -> list[str]:
    """The indexes that the header names."""
    return re.findall(r"\w+_(?:idx|pkey)", " ".join(re.findall(r"^--.*Index: (.*)", statement.source, re.MULTILINE)))


def touches(statement: Statement) -> list[Touch]:
    """Every table of ours that a statement touches itself; for functions that it calls, see routines.py."""
    tokens = _TOKEN.findall(statement.text.lower())
    return [touch for level in _levels(_nested(tokens)) for touch in _touches_at(level)]


def written(statement: Statement, *how: str) -> set[str]:
    """The tables that a statement writes to, itself or by a function."""
    return {
        touch.table
        for each in (statement, *inside(statement))
        for touch in touches(each)
        if touch.how in (how or WRITES)
    }


# ── cutting into levels ─────────────────────────────────────────────────────────────────────────────────────────


def _nested(tokens: list[str]) -> Nested:
    """Parentheses as lists in lists."""
    stack: list[Nested] = [[]]
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            inner = stack.pop()
            stack[-1].append(inner)
        else:
            stack[-1].append(token)
    return stack[0]


def _levels(nested: Nested) -> Iterator[Words]:
    words: list[str] = []
    for each in _flat(nested):
        if isinstance(each, list):
            yield from _levels(each)
        elif each in ("union", "intersect", "except"):
            yield tuple(words)
            words = []
        else:
            words.append(each)
    yield tuple(words)


def _flat(nested: Nested) -> Iterator[str | Nested]:
    """What is in parentheses without being a query belongs to the level around it."""
    for each in nested:
        if isinstance(each, list) and not (each and each[0] in _QUERY):
            yield from ("(", *_flat(each), ")")
        else:
            yield each


# ── finding tables ──────────────────────────────────────────────────────────────────────────────────────────────


def _touches_at(level: Words) -> Iterator[Touch]:
    for at, (before, word, table) in enumerate(zip(("", *level), level, level[1:], strict=False), start=1):
        how = _how(before, word)
        if how and table in MOVING + SHARED:
            alias = level[at + 2] if level[at + 1 : at + 2] == ("as",) else table
            yield Touch(how, table, alias, level, at)


def _how(before: str, word: str) -> str | None:
    """What is done to the table that follows these two words."""
    match before, word:
        case "insert", "into":
            return "insert"
        case "delete", "from":
            return "delete"
        case ("for" | "do", "update") | ("distinct", "from"):
            return None
        case _:
            return word if word in ("from", "join", "using", "update") else None


# ── finding the lane ────────────────────────────────────────────────────────────────────────────────────────────


def names_one_lane(statement: Statement, touch: Touch) -> bool:
    """Whether a touch of a moving table is confined to the lane that the statement was given."""
    if touch.how == "insert":
        return _inserts_one_lane(touch)
    readable = [each for each in _touches_at(touch.level) if each.table in MOVING and each.how != "insert"]
    names = {f"{touch.alias}.lane"} | ({"lane"} if len(readable) == 1 else set())
    lane = f"${statement.parameters.index('lane') + 1}::smallint" if "lane" in statement.parameters else None
    level = touch.level
    return any(level[at] in names and level[at + 1 : at + 3] == ("=", lane) for at in range(len(level)))


def _inserts_one_lane(touch: Touch) -> bool:
    """The lane is the first column, and its value is a lane given, read from a row of ours, or written down."""
    rest = touch.level[touch.at + 1 :]
    source = next((at for at, word in enumerate(rest) if word in ("select", "values")), None)
    if rest[:2] != ("(", "lane") or source is None:
        return False
    value = next(word for word in rest[source + 1 :] if word != "(")
    return value in ("lane", "0") or value.endswith((".lane", "::smallint"))

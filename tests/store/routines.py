"""Reads the PL/pgSQL functions that statements call, as the statements inside them.

Their variables become parameters of the same name and type, and whatever holds the lane becomes `:lane::smallint`. So
all that is asked of statements in files can be asked of these: which tables they touch, in one lane or in several, what
they need of a role, and how they are planned.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from mainspring.store.functions import all_functions
from mainspring.store.statements import Statement

_FUNCTION = re.compile(
    r"create (?:or replace )?function (?P<name>\w+)\((?P<takes>[^)]*)\)[^$]*?language plpgsql[^$]*?"
    r"as \$\$(?P<body>.*?)\$\$;",
    re.DOTALL,
)
_VARIABLE = re.compile(r"(\w+) ([a-z_ ]+?(?:\[\])?)(?= :=|,|;|$)")
_COMMENT = re.compile(r"--[^\n]*")
_BEFORE_A_QUERY = re.compile(
    r"\s*(?:if\b.*?\bthen\b|else\b|loop\b|exit when|return query|for [\w, ]+ in|\w+ :=)\s*", re.DOTALL
)
_END = re.compile(r"(?:;|\bloop)\s*$", re.MULTILINE)  # not one inside a text
_QUERY = re.compile(r"(?:select|insert|update|delete|with)\b")


def inside(statement: Statement) -> list[Statement]:
    """The statements inside the functions that a statement calls, and inside what these call; none if it calls none."""
    called = [each for name, found in _functions().items() if f"{name}(" in statement.text for each in found]
    return called + [each for inner in called for each in inside(inner)]


@cache
def _functions() -> dict[str, list[Statement]]:
    schema = resources.files("mainspring.store").joinpath("sql", "schema.sql").read_text(encoding="utf-8")
    sources = _COMMENT.sub("", "".join([schema, *all_functions().values()]))
    return {each["name"]: _statements(each) for each in _FUNCTION.finditer(sources)}


def _statements(function: re.Match[str]) -> list[Statement]:
    declared, _, body = function["body"].partition("\nbegin\n")
    variables = dict(_VARIABLE.findall(function["takes"])) | dict(_VARIABLE.findall(declared.partition("declare")[2]))
    queries = [query for query in map(_query_of, _END.split(body)) if query]
    for name, kind in variables.items():
        as_written, parameter = _as_written(name, kind, function), _parameter(name, kind)
        queries = [re.sub(rf"{as_written}(?=\[)", f"({parameter})", query) for query in queries]  # one of its elements
        queries = [re.sub(as_written, parameter, query) for query in queries]
    return [Statement(f"{function['name']} {number}", query) for number, query in enumerate(queries, start=1)]


def _query_of(piece: str) -> str:
    """The query in a piece of a function's body: nothing if there is none."""
    while before := _BEFORE_A_QUERY.match(piece):
        piece = piece[before.end() :]
    piece = re.sub(r"^\s*perform\b", "select", piece)
    piece = re.sub(r"\s+loop\b.*|(?<!insert )\binto [\w\s,]+?(?=\s+from\b|\s*$)", "", piece, flags=re.DOTALL).strip()
    is_expression = piece.startswith(("array(", "not exists"))
    return f"select {piece}" if is_expression else piece if _QUERY.match(piece) else ""


def _as_written(name: str, kind: str, function: re.Match[str]) -> str:
    """A variable with the name of a column is qualified (`use_column`); others are not."""
    if kind == "record":
        return rf"\b{name}\.(\w+)"
    qualified = f"{function['name']}.{name}"
    if qualified in function["body"]:
        return rf"\b{qualified}\b(?:::smallint)?"
    return rf"(?<![\w.:]){name}(?![\w.])"


def _parameter(name: str, kind: str) -> str:
    match name, kind:
        case (("own" | "lane"), _):
            return ":lane::smallint"
        case _, "record":
            return rf":{name}_\1::timestamptz"
        case _:
            return f":{name}::{kind}"

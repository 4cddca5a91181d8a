"""How a function is called, a value is made of, and a docstring is said: for pages that people read."""

from __future__ import annotations

import dataclasses
import inspect
import re
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, get_overloads

from generators.markdown import fenced, joined, table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

WIDTH = 100


def signature(function: Callable[..., Any], name: str, hidden: Collection[str] = ()) -> str:
    """How it is called, on one line if that fits; the longest of its overloads, if it has some."""
    shown = max(get_overloads(function), key=lambda each: len(str(inspect.signature(each))), default=function)
    whole = inspect.signature(shown)
    answer = "" if whole.return_annotation in (None, "None", whole.empty) else f" -> {whole.return_annotation}"
    words = list(_words(each for each in whole.parameters.values() if each.name not in ("self", "cls", *hidden)))
    line = f"{_keyword(function)}{name}({', '.join(words)}){answer}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{_keyword(function)}{name}(", *(f"    {word}," for word in words), f"){answer}"])


def _keyword(function: Callable[..., Any]) -> str:
    if inspect.isasyncgenfunction(function):
        return "async for … in "
    if inspect.iscoroutinefunction(function):
        return "await "
    if not hasattr(function, "__wrapped__"):
        return ""
    return "async with " if inspect.isasyncgenfunction(function.__wrapped__) else "with "


def _words(parameters: Iterator[inspect.Parameter]) -> Iterator[str]:
    starred = False
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        stars = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
        kind = "" if each.annotation is each.empty else f": {each.annotation}"
        yield f"{stars}{each.name}{kind}" + ("" if each.default is each.empty else f" = {value(each.default)}")


def value(given: object) -> str:
    """A default as one would write it."""
    if given is ...:
        return "…"
    if isinstance(given, Enum):
        return repr(given.value)
    return repr(given).removeprefix("datetime.") if isinstance(given, timedelta) else repr(given)


def members(kind: type[Enum]) -> str:
    remarks = remarks_of(kind)
    return table(("value", ""), ((f"`{each.value}`", remarks.get(each.name, "")) for each in kind))


def fields(kind: type) -> str:
    """The fields of a value; the columns that would be empty are left out."""
    remarks = remarks_of(kind)
    rows = [(f"`{name}`", f"`{type_}`", default, remarks.get(name, "")) for name, type_, default in _fields(kind)]
    kept = [column for column, cells in enumerate(zip(*rows, strict=True)) if any(cells)]
    headings = ("field", "type", "default", "")
    return table([headings[column] for column in kept], ([row[column] for column in kept] for row in rows))


def _fields(kind: Any) -> Iterator[tuple[str, str, str]]:
    """Name, type and default: of a dataclass or a named tuple."""
    if dataclasses.is_dataclass(kind):
        for each in dataclasses.fields(kind):
            yield each.name, str(each.type), default_of(each)
        return
    for name in kind._fields:
        default = kind._field_defaults
        yield name, kind.__annotations__[name].__forward_arg__, f"`{value(default[name])}`" if name in default else ""


def default_of(field: dataclasses.Field[Any]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return f"`{field.default_factory()!r}`"
    return "" if field.default is dataclasses.MISSING else f"`{value(field.default)}`"


def remarks_of(kind: type) -> dict[str, str]:
    """What is said behind a field or a member, on its line."""
    return dict(re.findall(r"^    (\w+)(?:: [^#\n]+| = [^#\n]+)  # (.+)$", inspect.getsource(kind), re.MULTILINE))


def prose(doc: str | None) -> str:
    """A docstring as Markdown: what is drawn in it stays as it is."""
    parts = inspect.cleandoc(doc or "").split("\n\n")
    return joined(*(fenced(part, "text") if _is_drawn(part) else part for part in parts))


def _is_drawn(paragraph: str) -> bool:
    return "├" in paragraph or all(line.startswith("    ") for line in paragraph.split("\n"))

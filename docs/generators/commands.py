"""docs/reference/cli.md: every command with its options, notes and examples, from the commands themselves."""

from __future__ import annotations

import re
import textwrap
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from generators.markdown import fenced, joined, table
from mainspring.cli.commands import commands

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cyclopts import App
    from cyclopts.argument import Argument

OPENING = """\
# The command line

`mainspring COMMAND --help` says the same. Results go to stdout; progress, log lines and errors to stderr. With
`-o json` a command prints exactly one JSON document (one a line, if it follows a run), and an error is one line
`{"error": {"code", "message", "hint", "fields"}}`; the codes are in [errors](errors.md).

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | refused or failed |
| 2 | the command line itself is wrong |
| 130 | interrupted |

Spans are written `500ms`, `30s`, `15m`, `2h`, `1d`; instants as in ISO 8601, with their offset."""

EXAMPLES = re.compile(r"^Examples?:\n", re.MULTILINE)


def page() -> str:
    sections = [section(path, app) for path, app in walk(commands, ("mainspring",))]
    contents = "\n".join(f"- [`{title}`](#{title.replace(' ', '-')}): {summary}" for title, summary, _ in sections)
    common = joined("## Options of every command", _options(commands.meta))
    return joined(OPENING, common, "## Commands", contents, *(text for *_, text in sections))


def walk(app: App, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], App]]:
    """Every command that does something, in the order in which help lists them."""
    if app.default_command is not None:
        yield path, app
    names = [name for name in app if not name.startswith("-")]
    for name in sorted(names, key=lambda name: (app[name].sort_key or 0, name)):
        yield from walk(app[name], (*path, name))


def section(path: tuple[str, ...], app: App) -> tuple[str, str, str]:
    title = " ".join(path)
    words = "".join(f" {_word(each)}" for each in shown(app) if _is_positional(each))
    summary = app.help.strip() if app.help else ""
    notes, *examples = EXAMPLES.split(app.help_epilogue or "", maxsplit=1)
    block = fenced(textwrap.dedent(examples[0]), "text") if examples else ""
    usage = f"`{title}{words}`" if words else ""
    return title, summary, joined(f"### {title}", usage, summary, _options(app), notes, block)


def shown(app: App) -> list[Argument]:
    """What can be said on its command line. (Where options come as a value, these are the value's fields.)"""
    found = app.assemble_argument_collection()
    return [each for each in found if each.parse and each.parameter.show is not False and not each.children]


def _options(app: App) -> str:
    return table(("", "default", ""), ((_names(each), _default(each), _about(each)) for each in shown(app)))


def _is_positional(argument: Argument) -> bool:
    return not argument.name.startswith("-")


def _word(argument: Argument) -> str:
    name = argument.name.upper() + ("…" if argument.field_info.kind is argument.field_info.VAR_POSITIONAL else "")
    return name if argument.required else f"[{name}]"


def _names(argument: Argument) -> str:
    if _is_positional(argument):
        return f"`{_word(argument)}`"
    names = sorted(argument.names, key=lambda name: (name in argument.negatives, -len(name)))
    value = "" if argument.hint is bool else f" {_value(argument)}"
    return ", ".join(f"`{name}{value if index == 0 else ''}`" for index, name in enumerate(names))


def _value(argument: Argument) -> str:
    kinds = {each for each in (argument.hint, *get_args(argument.hint)) if isinstance(each, type)}
    return "N" if int in kinds else "…"


def _default(argument: Argument) -> str:
    default: Any = argument.field_info.default
    if argument.required:
        return "required"
    if default in (None, "", (), False) or default is argument.field_info.empty:
        return ""
    if default is True:
        return "on"
    return f"`{default.value if isinstance(default, Enum) else default}`"


def _about(argument: Argument) -> str:
    text = (argument.parameter.help or "").strip()
    choices = [choice for kind in (argument.hint, *get_args(argument.hint)) for choice in _choices(kind)]
    return f"{text} One of {', '.join(f'`{choice}`' for choice in choices)}." if choices else text


def _choices(kind: object) -> tuple[str, ...]:
    if get_origin(kind) is Literal:
        return tuple(str(each) for each in get_args(kind))
    return tuple(str(each.value) for each in kind) if isinstance(kind, type) and issubclass(kind, Enum) else ()

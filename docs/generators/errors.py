"""docs/reference/errors.md: every stable code, with its class, what is said then, and the remedy, from the source."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import textwrap
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import mainspring
from generators.markdown import fenced, joined, table, unwrapped
from generators.sources import Call, calls, names_in, render, ways_to
from mainspring import errors
from mainspring.errors import MainspringError
from mainspring.model.steering import Steering

if TYPE_CHECKING:
    from collections.abc import Iterator

OPENING = """\
# Errors

Every error has a stable code: the same word as `error.code` in Python, in `[brackets]` and in `-o json` on the command
line, and in the history of attempts. Messages may change, codes do not. `error.hint` names the remedy where there is
one, and `error.fields` has the data behind the message.

## The classes

In `mainspring.errors`; built-in classes that an error also is are in parentheses."""

CODES = """\
## The codes

An ellipsis stands for what is filled in. Where a code has several messages, the plainest is shown."""

FAMILY = """\
## A value breaks a rule

Codes that begin with `invalid-` end with the name of what is wrong, as it is called on the command line or in Python.
`fields` has `field`, `value` and `rule`, and the message says all three."""

ON_RECORD = """\
## Only in history

Raised nowhere, but on record as the `code` of an attempt's error."""


E = TypeVar("E", bound=Exception)


class Site(NamedTuple):
    """One place where an error is made."""

    code: str
    kind: str
    message: str
    hint: str


def page() -> str:
    sites = defaultdict(list)
    for site in found():
        sites[site.code].append(site)
    plain = {code: places for code, places in sites.items() if not code.startswith("invalid-")}
    family = [_row(code, sites[code]) for code in sorted(sites.keys() - plain.keys())]
    steering = [(f"`{kind.code}`", unwrapped(kind.__doc__ or "")) for kind in _below(Steering) if _is_ours(kind)]
    return joined(
        OPENING,
        fenced(_tree(), "text"),
        CODES,
        table(("code", "class", "message", "hint"), (_row(code, plain[code]) for code in sorted(plain))),
        FAMILY,
        table(("code", "message"), ((code, message) for code, _, message, _ in family)),
        ON_RECORD,
        table(("code", "meaning"), sorted(steering)),
    )


def found() -> list[Site]:
    """Every code there is, at least once; with what is said at each place that names it."""
    kinds = {kind.__name__: kind for kind in _classes()}
    sites = [Site(kind.code, kind.__name__, "", "") for kind in kinds.values()]
    sites.append(Site("usage", "", "The command line itself is wrong.", "See: mainspring … --help"))
    for call in calls():
        if call.name in kinds:
            sites += _sites_of(call, kinds[call.name])
    return sites


def _sites_of(call: Call, kind: type[MainspringError]) -> Iterator[Site]:
    """An error that is made by a helper is made wherever the helper is called with another code."""
    given = call.keyword("code")
    message = call.node.args[0] if call.node.args else None
    for choice in (given.body, given.orelse) if isinstance(given, ast.IfExp) else (given,):
        for known in ways_to(call, set() if choice is None else names_in(choice)):
            code = kind.code if choice is None else render(choice, known)
            if "…" not in code:
                yield Site(code, kind.__name__, render(message, known), render(call.keyword("hint"), known))


def _row(code: str, sites: list[Site]) -> tuple[str, str, str, str]:
    """The plainest message: the one with the fewest blanks, and with a hint if any has one."""
    named = [site for site in sites if site.message.strip("… .")]
    best = min(named, key=lambda site: (not site.hint, site.message.count("…"), len(site.message)), default=sites[0])
    about = vars(getattr(errors, best.kind, object)).get("__doc__") or ""  # of its own: not what it inherits
    message = best.message.replace("….", "…") or about.partition("\n")[0]
    return f"`{code}`", f"`{best.kind}`" if best.kind else "", message, "" if best.hint == "…" else best.hint


def _classes() -> list[type[MainspringError]]:
    for module in pkgutil.walk_packages(mainspring.__path__, "mainspring."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    public = ("mainspring.errors", "mainspring.testing")  # else they stay between our own processes
    return [MainspringError, *(kind for kind in _below(MainspringError) if kind.__module__.startswith(public))]


def _is_ours(kind: type[object]) -> bool:
    """Whoever makes the page may know others: a test has some of its own."""
    return kind.__module__.startswith("mainspring.")


def _below(kind: type[E]) -> list[type[E]]:
    children: list[type[E]] = kind.__subclasses__()
    return [each for child in children for each in (child, *_below(child))]


def _tree() -> str:
    """The tree as it is drawn on top of the module."""
    _, _, drawn = (errors.__doc__ or "").partition("\n\n")
    return textwrap.dedent(drawn.partition("\n\n")[0])

"""docs/reference/python.md: the public names, with their signatures and docstrings, from the classes themselves."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from enum import Enum
from typing import TYPE_CHECKING, Any

import mainspring
import mainspring.control
import mainspring.model
import mainspring.testing
from generators.markdown import fenced, joined, table
from generators.signatures import fields, members, prose, signature
from mainspring import Handle, Mainspring
from mainspring.app.binding import Stream, Verb
from mainspring.testing import plugin

if TYPE_CHECKING:
    from collections.abc import Iterator

OPENING = """\
# Python

What applications import: `from mainspring import …`, and for their tests `from mainspring.testing import …`. Whatever
is not here may change without notice.

What is awaited here, of jobs, handles, `app.runs` and its like, has a twin for code that is not async, with `_sync` at
the end of its name: `handle.result_sync()`, `app.runs.find_sync(id)`, `for update in handle.watch_sync()`."""

# Which chapter a public name belongs to, by the module that it lives in: the first that fits.
CHAPTERS = {
    "mainspring.app": "The application",
    "mainspring.model.context": "Inside a handler",
    "mainspring.model.resource": "Inside a handler",
    "mainspring.model.steering": "Steering",
    "mainspring.model.policy": "Policies",
    "mainspring.schedule": "Schedules",
    "mainspring.errors": "Errors",
    "mainspring": "Values",
}
FIRST = ("Mainspring", "Job", "ChunkJob", "Handle", "Context", "RetryPolicy", "Run", "State", "Attempt", "Outcome")
CALLED = {
    "Mainspring": "app",
    "Job": "job",
    "ChunkJob": "job",
    "Handle": "handle",
    "Context": "context",
    "FrozenClock": "clock",
}
INTERNAL = re.compile(r"wiring\.|Coroutine\[|NewRun|Registry|Handler|Reporter|\bLine\b")


def page() -> str:
    chapters: dict[str, list[str]] = {name: [] for name in CHAPTERS.values()}
    for name in dict.fromkeys((*FIRST, *mainspring.__all__)):
        thing = getattr(mainspring, name)
        chapters[chapter_of(thing)].append(section(thing, name))
    chapters["The application"] += [section(kind, name) for name, kind in collections()]
    text = joined(OPENING, *(joined(f"## {name}", *parts) for name, parts in chapters.items() if parts))
    return joined(text, _answers(text), _testing())


def chapter_of(thing: object) -> str:
    module: str = getattr(thing, "__module__", "mainspring.model")
    return next(name for prefix, name in CHAPTERS.items() if f"{module}.".startswith(f"{prefix}."))


def collections() -> Iterator[tuple[str, type]]:
    """`app.runs` and its like: attributes of an application whose classes are its own and have no public name."""
    app = Mainspring("postgresql://nowhere")
    for name in sorted({*dir(Mainspring), *vars(app)}):
        kind = type(None) if name.startswith("_") else type(getattr(app, name))
        if kind.__module__.startswith("mainspring.app.") and kind.__name__ not in mainspring.__all__:
            yield f"app.{name}", kind


def _answers(text: str) -> str:
    """What methods take or answer with and nobody has to import."""
    types = "".join(re.findall(r"^(?:.*->|    \w+:|\| `\w+` \|).*$", text, re.MULTILINE))
    named = set(re.findall(r"\b[A-Z]\w+", types)) - {*mainspring.__all__}
    kinds = (kind for name, kind in sorted(_values().items()) if name in named)
    return joined("## What else there is", *(section(kind, kind.__name__) for kind in kinds))


def _values() -> dict[str, type]:
    found: dict[str, type] = {}
    for package in (mainspring.model, mainspring.control):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            found |= {
                n: v for n, v in vars(importlib.import_module(module.name)).items() if is_value(v) or is_choice(v)
            }
    return found


def is_value(thing: object) -> bool:
    return isinstance(thing, type) and (dataclasses.is_dataclass(thing) or hasattr(thing, "_fields"))


def is_choice(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, Enum)


def _testing() -> str:
    sections = (section(getattr(mainspring.testing, name), name) for name in mainspring.testing.__all__)
    found = ((name, thing) for name, thing in vars(plugin).items() if "Fixture" in type(thing).__name__)
    fixtures = ((f"`{name}`", (thing.__doc__ or "").partition("\n")[0]) for name, thing in found)
    opening = "See [how to test your jobs](../how-to/test-your-jobs.md)."
    return joined(
        *("## mainspring.testing", opening, *sections),
        *("### Fixtures for pytest", table(("fixture", "what it is"), fixtures)),
    )


# ── one name ────────────────────────────────────────────────────────────────────────────────────────────────────


def section(thing: Any, name: str) -> str:
    heading = f"### {name}"
    if not isinstance(thing, type):
        return joined(heading, fenced(signature(thing, name), "py") if callable(thing) else "", prose(thing.__doc__))
    about = prose(vars(thing).get("__doc__"))
    if is_choice(thing):
        return joined(heading, about, members(thing))
    if is_value(thing) and "def __init__" not in inspect.getsource(thing):
        acts = methods(thing, name) if thing.__module__.startswith("mainspring.schedule") else ()
        return joined(heading, about, fields(thing), *acts)
    by_hand = not name.startswith("app.") and not is_made_by_us(thing)
    made = fenced(signature(vars(thing).get("__init__", thing), name), "py") if by_hand else ""
    return joined(heading, made, about, _attributes(thing), *(() if is_value(thing) else methods(thing, name)))


def is_made_by_us(kind: type) -> bool:
    """Whether its constructor wants what only Mainspring has."""
    wanted = [str(each.annotation) for each in inspect.signature(kind).parameters.values()]
    return any(re.search("Mainspring|UUID", each) for each in wanted)


def _attributes(kind: type) -> str:
    slots = [each for each in getattr(kind, "__slots__", ()) if not each.startswith("_") and not is_value(kind)]
    return f"Attributes: {', '.join(f'`{each}`' for each in slots)}." if slots else ""


def _function_of(member: Any) -> Any:
    """What has the docstring: of a bound verb, the service's own method."""
    if isinstance(member, (Verb, Stream)):
        return member.method
    return member.fget if isinstance(member, property) else getattr(member, "__func__", member)


def methods(kind: type, name: str) -> Iterator[str]:
    """What has a docstring and speaks of nothing internal."""
    called = CALLED.get(name, name if name.startswith("app.") else name.lower())
    for word, member in vars(kind).items():
        function = _function_of(member)
        if word.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        lead = f"{name if isinstance(member, (classmethod, staticmethod)) else called}.{word}"
        hidden = ("actor", "run_id")[: 1 + (kind is Handle)] if isinstance(member, (Verb, Stream)) else ()
        text = lead if isinstance(member, property) else signature(function, lead, hidden)
        if not INTERNAL.search(f"{text} {inspect.signature(function).return_annotation}"):
            yield joined(fenced(text, "py"), prose(function.__doc__))

"""The source code, read as a tree: which calls there are, and what can be known about their arguments."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import mainspring

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(mainspring.__file__).parent
DEEPEST = 6  # from the call of an error to the call of a helper's helper's helper …

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Call(NamedTuple):
    """A call, and the function it is in."""

    module: str
    function: Function | None
    node: ast.Call

    @property
    def name(self) -> str:
        """The last word of what is called."""
        target = self.node.func
        return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")

    def keyword(self, name: str) -> ast.expr | None:
        return next((each.value for each in self.node.keywords if each.arg == name), None)


@cache
def calls() -> tuple[Call, ...]:
    """Every call in the package."""
    found: list[Call] = []
    for path in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += _calls_in(tree, str(path.relative_to(ROOT)), None)
    return tuple(found)


@cache
def calls_of(name: str) -> tuple[Call, ...]:
    """Every call of something with this name."""
    return tuple(call for call in calls() if call.name == name)


def _calls_in(node: ast.AST, module: str, function: Function | None) -> Iterator[Call]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield Call(module, function, child)
        yield from _calls_in(child, module, child if isinstance(child, Function) else function)


def render(node: ast.expr | None, known: Mapping[str, str]) -> str:
    """A string as it is written down, with what is known of its parts; the rest becomes an ellipsis."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(render(part, known) for part in parts)
        case ast.FormattedValue(value=value):
            return render(value, known)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return render(left, known) + render(right, known)
        case ast.BoolOp(op=ast.Or(), values=[first, *_]):
            return render(first, known)
        case ast.Name(id=name):
            return known.get(name, "…")
        case ast.Call(func=ast.Attribute(value=value, attr="strip" | "replace")):  # _ as -, as all codes have it
            return render(value, known).strip("_").replace("_", "-")
        case ast.Constant(value=int() | float() as number):
            return str(number)
        case None | ast.Constant():
            return ""
        case _:
            return "…"


def ways_to(call: Call, wanted: set[str], depth: int = 0) -> Iterator[dict[str, str]]:
    """What is known of the names around a call, for each way that leads to it and tells what is wanted."""
    function = call.function
    if function is None or depth == DEEPEST or not wanted & {each.arg for each in _parameters(function)}:
        yield {}
        return
    for caller in calls_of(function.name):
        if caller.module == call.module or not function.name.startswith("_"):
            given = _given(function, caller)
            further = {name for parameter in wanted & given.keys() for name in names_in(given[parameter])}
            for known in ways_to(caller, further, depth + 1):
                yield {parameter: render(value, known) for parameter, value in given.items()}


def names_in(node: ast.expr) -> set[str]:
    """The names whose values `render` writes down: to ask what others are would go through half of all calls."""
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.JoinedStr(values=parts):
            return set().union(*map(names_in, parts))
        case ast.BoolOp(op=ast.Or(), values=[first, *_]):
            return names_in(first)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return names_in(left) | names_in(right)
        case ast.FormattedValue(value=value) | ast.Call(func=ast.Attribute(value=value, attr="strip" | "replace")):
            return names_in(value)
        case _:
            return set()


def _given(function: Function, caller: Call) -> dict[str, ast.expr]:
    """Which expression each parameter gets from a caller, its default included."""
    signature = function.args
    positional = [each.arg for each in (*signature.posonlyargs, *signature.args) if each.arg != "self"]
    defaults = dict(zip(reversed(positional), reversed(signature.defaults), strict=False))
    named = zip(signature.kwonlyargs, signature.kw_defaults, strict=True)
    defaults |= {each.arg: value for each, value in named if value is not None}
    given = dict(zip(positional, caller.node.args, strict=False))
    return defaults | given | {each.arg: each.value for each in caller.node.keywords if each.arg is not None}


def _parameters(function: Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]

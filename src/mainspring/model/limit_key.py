"""By what a limit tells runs apart: a path into their arguments, or a text with such paths in braces.

Nothing is evaluated.

`customer`, `order.customer.id`, `items.0.sku`; `{region}/{customer|lower}`, `{customer or nobody}`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from mainspring.errors import InvalidInput, shortened
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_EXPRESSION_LENGTH = 200
MAX_KEY_LENGTH = 200  # of what comes out
MAX_PATHS = 8
MAX_STEPS = 10
UNKNOWN_KEY = "\\?"  # of runs that were accepted before, and whose arguments lack it

_PATH = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*"
_WHOLE = re.compile(_PATH)
_PART = re.compile(rf"\{{\s*({_PATH})\s*(?:\|\s*([a-z]+)\s*)?(?:\bor\s+([^{{}}|]*?)\s*)?\}}")
_FILTERS: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper}
_HELP = 'Write a path into the arguments ("customer", "order.customer.id") or a text with such paths in braces.'


class Path(NamedTuple):
    """Where to look in the arguments, what to do with what is there, and what to take if nothing is."""

    steps: tuple[str, ...]
    filter: str | None = None
    default: str | None = None

    def text_in(self, arguments: Any) -> str:
        value = arguments
        for step in self.steps:
            value = _step(value, step)
        if value is None:
            if self.default is None:
                raise _fails(".".join(self.steps), None, "is not among the arguments, or null")
            return self.default
        text = _as_text(value, ".".join(self.steps))
        return text if self.filter is None else _FILTERS[self.filter](text)


@dataclass(frozen=True, slots=True)
class LimitKey:
    """An expression that was understood: texts and paths in turns."""

    source: str
    parts: tuple[str | Path, ...]

    def of(self, arguments: Any) -> str:
        """What it comes to for these arguments, on one line; an error if that is nothing, or too long."""
        text = "".join(part if isinstance(part, str) else part.text_in(arguments) for part in self.parts)
        if not 0 < len(text) <= MAX_KEY_LENGTH:
            raise _fails(self.source, text, f"must come to 1 to {MAX_KEY_LENGTH} characters")
        return _escaped_text(text)


def escaped(value: Any) -> str:
    """A value of a key, as a person gives it, like one that was read from arguments."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_KEY_LENGTH:
        raise InvalidInput(
            f"value is {quoted(value)}; it must be a text of 1 to {MAX_KEY_LENGTH} characters.",
            code="invalid-value",
            field="value",
            value=quoted(value),
            rule=f"must be a text of 1 to {MAX_KEY_LENGTH} characters",
        )
    return _escaped_text(value)


def limit_key(source: Any, field: str = "key") -> LimitKey:
    """Understand an expression, or say why not."""
    if not isinstance(source, str) or not 0 < len(source) <= MAX_EXPRESSION_LENGTH or not source.isprintable():
        raise _invalid(field, source, f"must be a string of 1 to {MAX_EXPRESSION_LENGTH} printable characters")
    return _understood(source, field)


@lru_cache(1_000)
def _understood(source: str, field: str) -> LimitKey:
    if _WHOLE.fullmatch(source):
        return LimitKey(source, (_path(source, source, field),))
    parts: list[str | Path] = []
    end = 0
    for match in _PART.finditer(source):
        if match[2] is not None and match[2] not in _FILTERS:
            raise _invalid(field, source, f"knows no {match[2]!r}, only {' and '.join(_FILTERS)}")
        parts += [
            source[end : match.start()],
            _path(match[1], source, field)._replace(filter=match[2], default=match[3]),
        ]
        end = match.end()
    parts.append(source[end:])
    texts = "".join(part for part in parts if isinstance(part, str))
    if end == 0 or "{" in texts or "}" in texts:
        raise _invalid(field, source, "must be a path into the arguments, or a text with such paths in braces")
    if len(parts) // 2 > MAX_PATHS:
        raise _invalid(field, source, f"must have at most {MAX_PATHS} paths")
    return LimitKey(source, tuple(part for part in parts if part != ""))


def _path(text: str, source: str, field: str) -> Path:
    steps = tuple(text.split("."))
    if len(steps) > MAX_STEPS:
        raise _invalid(field, source, f"must have at most {MAX_STEPS} steps")
    return Path(steps)


def _step(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and step.isdecimal() and len(step) < 10:
        return value[int(step)] if int(step) < len(value) else None
    return None


def _as_text(value: Any, path: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    raise _fails(path, value, "must be a text, a number or a truth value")


def _escaped_text(text: str) -> str:
    return "".join(_escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    """A key is one line, and reads as what it is."""
    if letter == "\\":
        return "\\\\"
    if letter.isprintable():
        return letter
    return f"\\u{ord(letter):04x}" if ord(letter) <= 0xFFFF else f"\\U{ord(letter):08x}"


def _invalid(field: str, source: object, rule: str) -> InvalidInput:
    return InvalidInput(
        f"The {field} of a limit is {quoted(source)}; it {rule}.",
        code=f"invalid-limit-{field}",
        hint=_HELP,
        field=field,
        value=quoted(source),
        rule=rule,
    )


def _fails(path: str, value: object, rule: str) -> InvalidInput:
    shown = "" if value is None else f" is {shortened(str(value))}; it"
    return InvalidInput(
        f"The run is limited by {path}, which{shown} {rule}.",
        code="limit-key-fails",
        hint="Pass such an argument, or give the limit another key: mainspring limit list.",
        field=path,
        rule=rule,
    )

"""Values as people type them: `30s`, `2026-12-24T18:00+01:00`, `name=value`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model.job import EARLIEST, LATEST
from mainspring.model.payload import quoted
from mainspring.model.policy import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_SPAN = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_BEGINNING = re.compile(r"[0-9a-f-]{4,35}")  # with less, a slip would mean something
_LONGEST = 999_999_999 * 86_400.0

_RETRY_OPTIONS: dict[str, Callable[[str], Any]] = {
    "max_attempts": lambda text: _value(text),
    "back_off": lambda text: text,
    "first_delay": lambda text: parse_span(text, "retry"),
    "factor": lambda text: _value(text),
    "cap": lambda text: parse_span(text, "retry"),
    "jitter": lambda text: text,
    "retry_on": lambda text: text.split("+"),
    "never_on": lambda text: text.split("+"),
}


def parse_span(text: str | None, option: str) -> timedelta | None:
    """A duration such as 90s, 15m, 2h, 1d or 1h30m."""
    if text is None:
        return None
    if not _SPAN.fullmatch(text):
        raise _invalid(option, text, "must be a duration", "Write 500ms, 90s, 15m, 2h, 1d, or 1h30m.")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    if seconds > _LONGEST:
        raise _invalid(option, text, "must be shorter than that", "Write 500ms, 90s, 15m, 2h, 1d, or 1h30m.")
    return timedelta(seconds=seconds)


def parse_bounds(text: str, option: str) -> tuple[int, int]:
    """Two whole numbers, such as 1:8."""
    least, colon, most = text.partition(":")
    if not (colon and least.isdecimal() and most.isdecimal() and len(text) <= 20):
        raise _invalid(option, text, "must be two whole numbers with a colon between", "For example 1:8.")
    return int(least), int(most)


def parse_retry(text: str | None) -> RetryPolicy | None:
    """A retry policy such as max_attempts=3,back_off=constant,first_delay=5s,jitter=full."""
    if text is None:
        return None
    options: dict[str, Any] = {}
    for part in text.split(","):
        name, sign, value = part.partition("=")
        if not sign or name not in _RETRY_OPTIONS or name in options:
            raise _invalid("retry", text, "must be a list of name=value", f"Known names: {', '.join(_RETRY_OPTIONS)}.")
        options[name] = _RETRY_OPTIONS[name](value)
    return RetryPolicy(**options)


def parse_instant(text: str | None, option: str, *, or_else: str = "") -> datetime | None:
    """An instant in ISO 8601, with its offset: a time without one would mean something else on each machine."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        rule = "must be an instant in ISO 8601" if at is None else "must name its offset from UTC"
        raise _invalid(option, text, rule, f"Write {or_else}2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00.")
    return at


def parse_moment(text: str | None, option: str, now: datetime) -> datetime | None:
    """An instant, or how long ago it was."""
    if text is not None and _SPAN.fullmatch(text):
        span = parse_span(text, option)
        assert span is not None
        return max(now - min(span, now - EARLIEST), EARLIEST)
    return parse_instant(text, option, or_else="2h for two hours ago, ")


def parse_later(text: str | None, option: str, now: datetime) -> datetime | None:
    """An instant, or how long from now on."""
    if text is not None and _SPAN.fullmatch(text):
        span = parse_span(text, option)
        assert span is not None
        return now + min(span, LATEST - now)
    return parse_instant(text, option, or_else="2h for two hours from now, ")


def parse_payload(payload: str | None, pairs: Sequence[str]) -> dict[str, Any]:
    """The arguments of a run: one JSON object, or one `name=value` each."""
    if payload is None:
        return _parse_pairs(pairs)
    if pairs:
        raise InvalidInput(
            "Both --payload and --arg were given.", code="payload-and-arg", hint="Give one of them.", field="payload"
        )
    document = _decoded(payload)
    if not isinstance(document, dict):
        raise _invalid("payload", payload, "must be a JSON object", 'For example: --payload \'{"name": "Ada"}\'')
    return document


def _decoded(payload: str) -> Any:
    try:
        return msgspec.json.decode(payload.encode("utf-8", "surrogateescape"))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput(
            f"The payload is not JSON: {error}.",
            code="payload-not-json",
            hint='For example: --payload \'{"name": "Ada"}\'',
            field="payload",
            value=quoted(payload),
        ) from error


def _parse_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not name or not sign:
            raise _invalid("arg", pair, "must have the form name=value", "For example: --arg name=Ada --arg count=3")
        if name in arguments:
            raise _invalid("arg", pair, "must be given once per name", 'For a list: --arg names=\'["Ada", "Bob"]\'')
        arguments[name] = _value(value)
    return arguments


def _value(text: str) -> Any:
    """JSON if it is JSON, else the text itself: count=3 is a number, name=Ada a string, zip='"01234"' a string."""
    try:
        return msgspec.json.decode(text.encode("utf-8", "surrogateescape"))
    except (msgspec.DecodeError, RecursionError):
        return text


def parse_words(text: str) -> tuple[str, ...]:
    """Words with commas between, each once: gpu,eu."""
    return tuple(dict.fromkeys(word for word in (part.strip() for part in text.split(",")) if word))


def parse_weights(text: str, option: str) -> dict[str, int | None]:
    """Words with commas between, each perhaps with its weight: mail=3,reports=1."""
    weights: dict[str, int | None] = {}
    for word in parse_words(text):
        name, sign, weight = word.partition("=")
        if sign and (not weight.isascii() or not weight.isdigit() or len(weight) > 9):
            raise _invalid(option, word, "must have a whole number as its weight", "For example: mail=3,reports=1")
        weights[name.strip()] = int(weight) if sign else None
    return weights


def is_beginning_of_id(text: str) -> bool:
    """Whether it may stand for a longer id: lists show no more than a beginning where there is no room."""
    return _BEGINNING.fullmatch(text.lower()) is not None


def whole_id(text: str, known: Iterable[object]) -> str:
    """The known id that begins with this; where none does, what was typed: whoever looks for it says so."""
    found = [each for each in map(str, known) if each.startswith(text.lower())]
    if len(found) > 1:
        raise InvalidInput(
            f"{quoted(text)} is the beginning of {len(found)} ids.",
            code="ambiguous-id",
            hint=f"Give more of it: {' or '.join(found[:2])}.",
            field="id",
            value=quoted(text),
        )
    return found[0] if found else text


def _invalid(option: str, value: str, rule: str, hint: str) -> InvalidInput:
    return InvalidInput(
        f"--{option} is {quoted(value)}; it {rule}.",
        code=f"invalid-{option}",
        hint=hint,
        field=option,
        value=quoted(value),
        rule=rule,
    )


def parse_port(text: str) -> int | None:
    """A TCP port, or none."""
    if text == "none":
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= 65_535:
        raise _invalid("port", text, "must be a TCP port or none", "Write a number from 1 to 65535.")
    return int(text)

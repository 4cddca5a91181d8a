"""Headers: small texts that travel with a run, such as trace context."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model import chain, occurrence, unique
from mainspring.model.fan_out import CHILD_OF, HAS_CHILDREN
from mainspring.model.payload import quoted

MAX_HEADERS = 20
MAX_VALUE_LENGTH = 1_000
MAX_BYTES = 4_096
RESERVED = ("rerun_of", "backfilled_by", *chain.HEADERS, *occurrence.HEADERS)  # what we put there ourselves

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_VALUE = re.compile(rf"[\x20-\x7e]{{1,{MAX_VALUE_LENGTH}}}")


def read_headers(document: str | None) -> dict[str, str]:
    """The headers of a run, from its row, as people and handlers see them."""
    if document is None:
        return {}
    headers = msgspec.json.decode(document)
    for name in (unique.HEADER, HAS_CHILDREN, CHILD_OF):
        headers.pop(name, None)
    return occurrence.unpacked(headers)


def checked_headers(headers: object) -> dict[str, str] | None:
    if headers is None:
        return None
    if not isinstance(headers, Mapping) or len(headers) > MAX_HEADERS:
        raise _invalid(headers, f"must be a mapping of at most {MAX_HEADERS} names to texts")
    for name, value in headers.items():
        _check(name, value)
    if sum(len(name) + len(value) for name, value in headers.items()) > MAX_BYTES:
        raise _invalid(headers, f"must have at most {MAX_BYTES:,} characters in all")
    return dict(headers) or None


def _check(name: object, value: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in RESERVED:
        raise _invalid(
            name,
            "must have names of 1 to 64 lower-case letters, digits or _ . -, and not one of " + ", ".join(RESERVED),
        )
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        raise _invalid(value, f"must have values of 1 to {MAX_VALUE_LENGTH:,} printable ASCII characters")


def _invalid(value: object, rule: str) -> InvalidInput:
    return InvalidInput(
        f"headers: {quoted(value)} does not fit; they {rule}.",
        code="invalid-headers",
        field="headers",
        value=quoted(value),
        rule=rule,
    )

"""Payloads and results: JSON in bytes, bounded in size and depth, free of what no store can keep."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from mainspring.errors import InvalidInput, shortened
from mainspring.model.conversion import NotJson, as_json

JSON_CODEC = 0
MAX_PAYLOAD_BYTES = 256 * 1024
MAX_RESULT_BYTES = 256 * 1024
MAX_DEPTH = 64

# An escaped NUL, not an escaped backslash followed by "u0000".
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_UNPRINTABLE = re.compile("[\x00\ud800-\udfff]")

_encoder = msgspec.json.Encoder(enc_hook=as_json)
_sorting_encoder = msgspec.json.Encoder(enc_hook=as_json, order="deterministic")


def encode(value: Any, *, what: str, limit: int, sorts: bool = False) -> bytes:
    """`value` as JSON, or an error that says why it cannot be kept. `what` is "payload" or "result".

    `sorts` is for values with sets, whose order differs between processes: equal values become equal bytes.
    """
    try:
        data = (_sorting_encoder if sorts else _encoder).encode(value)
    except UnicodeEncodeError as error:
        raise _refused(what, "not-storable", "it contains a lone surrogate", "Replace or remove it.") from error
    except RecursionError as error:
        raise _too_deep(what) from error
    except MemoryError:
        raise
    except Exception as error:  # a model may run code of its own, and raise what it likes
        instead = error.hint if isinstance(error, NotJson) and what == "payload" else None
        raise _refused(what, "not-json", f"{error}", instead or "Pass values that JSON can hold.") from error
    check_encoded(data, what=what, limit=limit)
    if b"null" in data and not _is_finite(
        msgspec.to_builtins(value, enc_hook=as_json)
    ):  # they become null without a word
        raise _refused(what, "not-json", "it contains NaN or infinity, which JSON cannot hold", "Replace or remove it.")
    return data


def check_encoded(data: bytes, *, what: str, limit: int) -> None:
    """Refuse JSON that is too large, too deep or has NUL characters."""
    if len(data) > limit:
        raise _refused(
            what,
            "too-large",
            f"it has {len(data):,} bytes; at most {limit:,} are allowed",
            "Store large data elsewhere and pass a reference.",
        )
    # Only something with many brackets can be deep: almost always this counts bytes and is done.
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _depth(data) > MAX_DEPTH:
        raise _too_deep(what)
    if b"\\u0000" in data and _NUL.search(data):
        raise _refused(what, "not-storable", "it contains a NUL character", "Replace or remove it.")


def decode(data: bytes, codec: int = JSON_CODEC) -> Any:
    if codec != JSON_CODEC:
        raise InvalidInput(f"Codec {codec} is not known to this program.", code="unknown-codec")
    return msgspec.json.decode(data)


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(_is_finite(each) for each in value.values())
    if isinstance(value, (list, tuple)):
        return all(_is_finite(each) for each in value)
    return True


def _depth(data: bytes) -> int:
    """How deep brackets nest, outside strings."""
    deepest = level = 0
    for token in re.finditer(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', data):
        mark = token[0][:1]
        if mark in b"[{":
            level += 1
            deepest = max(deepest, level)
        elif mark in b"]}":
            level -= 1
    return deepest


def _too_deep(what: str) -> InvalidInput:
    return _refused(what, "too-deep", f"it nests deeper than {MAX_DEPTH} levels", "Flatten it.")


def _refused(what: str, why: str, rule: str, hint: str) -> InvalidInput:
    return InvalidInput(f"The {what} cannot be kept: {rule}.", code=f"{what}-{why}", hint=hint, field=what, rule=rule)


def printable(text: str, limit: int) -> str:
    """Text that any store and any terminal can take: NULs and lone surrogates replaced, cut at `limit`."""
    clean = _UNPRINTABLE.sub("\ufffd", text)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def quoted(value: object) -> str:
    return printable(shortened(value), 80)

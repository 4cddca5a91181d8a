"""Text for terminals. What jobs supplied is data: it can neither move a cursor nor colour a line nor ring a bell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

# Control characters (C0, DEL, C1), line separators, what turns the direction of text, and lone surrogates.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def safe(text: object, limit: int | None = None) -> str:
    """One harmless line: everything a terminal would act upon is written out, as in `\\x1b[31m`."""
    line = _UNSAFE.sub(_written_out, str(text))
    return line if limit is None or len(line) <= limit else line[: limit - 1] + "…"


def safe_lines(text: object) -> str:
    """Like `safe`, for text of several lines: its line breaks stay."""
    return "\n".join(safe(line) for line in str(text).splitlines())


def _written_out(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def as_json(document: Any, *, indent: int = 2) -> str:
    """A document as JSON that is harmless on a terminal too. `indent=0` makes it one line."""
    import msgspec

    try:
        data = msgspec.json.encode(document, enc_hook=_plain)
    except UnicodeEncodeError:  # a lone surrogate: bytes of a command line that are no text come as such
        data = _in_ascii(msgspec.to_builtins(document, enc_hook=_plain))
    text = msgspec.json.format(data, indent=indent).decode() if indent else data.decode()
    return _UNSAFE.sub(lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", text)


def _plain(value: Any) -> Any:
    from mainspring.model import conversion

    try:
        return conversion.as_json(value)
    except TypeError:
        return str(value)


def _in_ascii(document: Any) -> bytes:
    import json

    return json.dumps(document, separators=(",", ":")).encode()


def as_instant(at: datetime | None) -> str:
    return "–" if at is None else f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03} UTC"


def as_span(seconds: float) -> str:
    """A span as people say it: 1.2 ms, 34 s, 5 min 10 s, 3 h, 2 d."""
    if seconds < 0:
        return f"-{as_span(-seconds)}"
    if seconds < 0.9995:
        return f"{seconds * 1000:.1f} ms" if seconds < 0.01 else f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    for size, unit, smaller, small in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            rest = int(seconds % size // smaller)
            return f"{int(seconds // size)} {unit}" + (f" {rest} {small}" if rest else "")
    raise AssertionError(seconds)


def number_text(count: float) -> str:
    """A number that may be an estimate: `1,200`, `3.5`."""
    return f"{count:,.0f}" if abs(count - round(count)) < 0.05 else f"{count:,.1f}"


def counted(count: float, unit: str) -> str:
    """`1 date`, `3 dates`, `1,200 runs`."""
    number = number_text(count)
    return f"{number} {unit}{'' if number == '1' else 's'}"


def as_rate(per_second: float | None) -> str:
    """Something per second, with as many digits as matter."""
    if per_second is None:
        return "–"
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.1f}"

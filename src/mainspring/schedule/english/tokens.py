"""English text cut into words, numbers, times and dates, each knowing where it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["date", "time", "ordinal", "number", "word", "mark", "end"]

_TOKEN = re.compile(
    r"""(?P<date>\d{4}-\d\d?-\d\d?(?!\d))
    | (?P<time>\d\d?:\d\d(?::\d\d)?(?!\d))
    | (?P<ordinal>\d\d?(?:st|nd|rd|th)\b)
    | (?P<number>\d+)
    | (?P<word>[ap]\.m\.|[^\W\d_]+)
    | (?P<mark>\S)""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str  # in lower case
    at: int


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text, and one that stands for its end."""
    found = [
        Token(_kind(match), match[0].lower().replace(".m.", "m"), match.start())
        for match in _TOKEN.finditer(text)
        if not (match[0] == "." and text[match.end() :].strip() == "")  # a sentence may end with a full stop
    ]
    return [*found, Token("end", "", len(text))]


def _kind(match: re.Match[str]) -> Kind:
    kind: Kind = match.lastgroup  # type: ignore[assignment]  # the groups are named after the kinds
    return kind

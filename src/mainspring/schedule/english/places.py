"""Time zones in sentences: by their name; and for cities and letters such as EST, the names to write instead."""

from __future__ import annotations

import difflib
from functools import lru_cache
from typing import TYPE_CHECKING

from mainspring.schedule.english.refusals import Refusal
from mainspring.schedule.english.vocabulary import NUMBERS
from mainspring.schedule.zone_letters import LETTERS, NAME_A_PLACE, OFFSET, names_offset
from mainspring.schedule.zones import zone_names

if TYPE_CHECKING:
    from mainspring.schedule.english.reader import Reader, Token

REGIONS = {
    "eastern": "America/New_York",
    "central": "America/Chicago",
    "mountain": "America/Denver",
    "pacific": "America/Los_Angeles",
}


@lru_cache(maxsize=1)
def _zones_by_lower_case() -> dict[str, str]:
    return {name.lower(): name for name in zone_names()}


def known_zone(name: str) -> str | None:
    lowered = name.lower()
    return None if lowered in LETTERS else _zones_by_lower_case().get(lowered)


def refuse_unknown_zone(reader: Reader, name: str, *, is_named: bool) -> None:
    """Refuse what was meant to be a zone and is none; do nothing if it may be something else."""
    token, lowered = reader.token, name.lower()
    if lowered == "and/or":
        rewrites = [reader.replaced(token, reader.after(2), "and")]
        raise Refusal(reader.text, token.at, "'and/or' may be one of them or both", rewrites=rewrites)
    if lowered in LETTERS or OFFSET.fullmatch(name):
        raise _instead(reader, token, _last_of(reader, name), names_offset(name), LETTERS.get(lowered, ()))
    if lowered in REGIONS and reader.after(1).text == "time":
        raise _instead(reader, token, reader.after(1), f"'{name} time' is no time zone", (REGIONS[lowered],))
    city = _city(reader)
    if city is not None and (is_named or reader.tokens[reader.tokens.index(city[0]) + 1].text == "time"):
        raise _instead(reader, token, city[0], f"'{reader.text[token.at : city[0].end]}' is no time zone", city[1])
    if token.kind == "number" or token.text in NUMBERS:
        return
    if "/" in name or (is_named and name):
        near = difflib.get_close_matches(lowered[:60], _zones_by_lower_case(), n=2, cutoff=0.75)
        last = _last_of(reader, name)
        found = tuple(_zones_by_lower_case()[each] for each in near)
        raise _instead(reader, token, last, f"'{name[:60]}' is no time zone", found)


def _city(reader: Reader) -> tuple[Token, tuple[str, ...]] | None:
    """The zones named after the next one to three words, and the last of these words."""
    for count in (3, 2, 1):
        tokens = [reader.after(step) for step in range(count)]
        city = "_".join(token.text for token in tokens if token.kind == "word")
        zones = tuple(name for lowered, name in _zones_by_lower_case().items() if lowered.endswith(f"/{city}"))
        if city and zones and city.count("_") == count - 1:
            return tokens[-1], zones
    return None


def _last_of(reader: Reader, raw: str) -> Token:
    end = reader.token.at + len(raw)
    inside = [token for token in reader.tokens if reader.token.at <= token.at < end]
    return inside[-1] if inside else reader.token


def _instead(reader: Reader, first: Token, last: Token, problem: str, zones: tuple[str, ...]) -> Refusal:
    rewrites = [reader.replaced(first, last, zone) for zone in zones]
    return Refusal(
        reader.text,
        first.at,
        problem,
        remedy=NAME_A_PLACE,
        rewrites=rewrites,
        examples=("every day at 09:00 in Europe/Berlin",),
    )

"""Zones as crontabs and their kin write them: `CRON_TZ=Europe/Berlin 0 9 * * *`, `TZ=…`, `0 9 * * * Europe/Berlin`."""

from __future__ import annotations

import re
from typing import NamedTuple

from mainspring.schedule.faults import fault
from mainspring.schedule.zone_letters import LETTERS, NAME_A_PLACE, OFFSET, names_offset
from mainspring.schedule.zones import zone_named, zone_names

IN_FRONT = re.compile(r"\s*(?:CRON_)?TZ=(?P<zone>\S+)\s+")
_BEHIND = re.compile(  # behind one cron expression, macro or form of EventBridge; plain English says it in words
    r"(?P<when>\s*(?:@[^|]*?|(?:cron|rate|at)\s*\([^|]*\)|[0-9*?H][^\s:]*(?:\s+[^\s:|]+){4,6}))"
    r"\s+(?P<zone>[a-z]{2,}/[a-z]\S*|[a-z][a-z0-9+:-]+)\s*",
    re.IGNORECASE,
)


class NamedZone(NamedTuple):
    """A zone, and where in the text it stands."""

    name: str
    position: int


def without_zones(when: str) -> tuple[str, list[NamedZone]]:
    """The text without its zones, blanks in their place so that errors point rightly; and the zones."""
    text, zones = when, list[NamedZone]()
    if match := IN_FRONT.match(when):
        zones.append(_zone(text, match))
        when = " " * match.end() + when[match.end() :]
    if (match := _BEHIND.fullmatch(when)) and _is_zone(match["zone"]):
        zones.append(_zone(text, match))
        when = match["when"]
    return when, zones


def _is_zone(word: str) -> bool:
    return "/" in word or word in zone_names() or _is_offset(word)


def _is_offset(word: str) -> bool:
    return word.lower() in LETTERS or (word not in zone_names() and OFFSET.fullmatch(word) is not None)


def _zone(text: str, match: re.Match[str]) -> NamedZone:
    """The zone that is named. Letters are refused as in plain English; who means the offset all year has zone=EST."""
    name, (begin, end) = match["zone"], match.span("zone")
    if _is_offset(name):
        offers = [text[:begin] + place + text[end:] for place in LETTERS.get(name.lower(), ())]
        raise fault(text, begin, names_offset(name), offers=offers, code="unknown-zone", hint=NAME_A_PLACE)
    return NamedZone(zone_named(name).key, begin)

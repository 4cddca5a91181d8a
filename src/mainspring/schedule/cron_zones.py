"""Zones as crontabs and their kin write them: `CRON_TZ=Europe/Berlin 0 9 * * *`, `TZ=…`, `0 9 * * * Europe/Berlin`."""

from __future__ import annotations

import re
from typing import NamedTuple

from mainspring.schedule.zones import zone_named, zone_names

IN_FRONT = re.compile(r"\s*(?:CRON_)?TZ=(?P<zone>\S+)\s+")
_BEHIND = re.compile(  # behind one cron expression, macro or form of EventBridge; plain English says it in words
    r"(?P<when>\s*(?:@[^|]*?|(?:cron|rate|at)\s*\([^|]*\)|[0-9*?H][^\s:]*(?:\s+[^\s:|]+){4,6}))"
    r"\s+(?P<zone>[a-z]{2,}/[a-z]\S*|[a-z][a-z0-9+-]+)\s*",
    re.IGNORECASE,
)


class NamedZone(NamedTuple):
    """A zone, and where in the text it stands."""

    name: str
    position: int


def without_zones(when: str) -> tuple[str, list[NamedZone]]:
    """The text without its zones, blanks in their place so that errors point rightly; and the zones."""
    zones: list[NamedZone] = []
    if match := IN_FRONT.match(when):
        zones.append(_zone(match))
        when = " " * match.end() + when[match.end() :]
    if (match := _BEHIND.fullmatch(when)) and ("/" in match["zone"] or match["zone"] in zone_names()):
        zones.append(_zone(match))
        when = match["when"]
    return when, zones


def _zone(match: re.Match[str]) -> NamedZone:
    return NamedZone(zone_named(match["zone"]).key, match.start("zone"))

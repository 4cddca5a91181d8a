"""Letters and offsets in place of a time zone, such as EST and UTC+2; and the places to name instead."""

from __future__ import annotations

import re

# Letters of offsets. EST is the same all year, which people who say it in July do not mean; and CET, a zone in tzdata,
# does change. So neither is taken for the other.
LETTERS = {
    "et": ("America/New_York",),
    "est": ("America/New_York",),
    "edt": ("America/New_York",),
    "ct": ("America/Chicago",),
    "cst": ("America/Chicago", "Asia/Shanghai"),
    "cdt": ("America/Chicago",),
    "mt": ("America/Denver",),
    "mst": ("America/Denver", "America/Phoenix"),
    "mdt": ("America/Denver",),
    "pt": ("America/Los_Angeles",),
    "pst": ("America/Los_Angeles",),
    "pdt": ("America/Los_Angeles",),
    "akst": ("America/Anchorage",),
    "hst": ("Pacific/Honolulu",),
    "bst": ("Europe/London",),
    "ist": ("Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"),
    "wet": ("Europe/Lisbon",),
    "cet": ("Europe/Berlin",),
    "cest": ("Europe/Berlin",),
    "met": ("Europe/Berlin",),
    "eet": ("Europe/Athens",),
    "msk": ("Europe/Moscow",),
    "jst": ("Asia/Tokyo",),
    "aest": ("Australia/Sydney", "Australia/Brisbane"),
}
OFFSET = re.compile(r"(?:UTC|GMT)?[+-][0-9]{1,2}(?::?[0-9]{2})?", re.IGNORECASE)
NAME_A_PLACE = "Name a place: its clock is the one that is meant, summer and winter."


def names_offset(name: str) -> str:
    return f"'{name}' names an offset from UTC, not a place whose clock is meant"

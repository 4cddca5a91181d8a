"""Reads the transitions of a zone straight from its compiled file (RFC 8536), independently of zoneinfo."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from importlib import resources

HEADER = struct.Struct(">4s1s15x6l")


def listed_jumps(name: str, first_year: int, end_year: int) -> set[tuple[datetime, timedelta]]:
    """When the offset from UTC changes, and by how much, as far as the file lists it."""
    data = (resources.files("tzdata") / "zoneinfo").joinpath(*name.split("/")).read_bytes()
    at = HEADER.size
    _, _, is_ut, is_standard, leaps, times, types, letters = HEADER.unpack_from(data)
    at += 5 * times + 6 * types + letters + 8 * leaps + is_standard + is_ut  # the old block, with 32 bits
    _, _, _, _, _, times, types, _ = HEADER.unpack_from(data, at)
    at += HEADER.size
    instants = struct.unpack_from(f">{times}q", data, at)
    kinds = data[at + 8 * times : at + 9 * times]
    offsets = [struct.unpack_from(">lbb", data, at + 9 * times + 6 * kind)[0] for kind in range(types)]
    begin, end = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (first_year, end_year))
    jumps, before = set(), offsets[0]
    for instant, kind in zip(instants, kinds, strict=True):
        if offsets[kind] != before and begin <= instant < end:
            jumps.add((datetime.fromtimestamp(instant, UTC), timedelta(seconds=offsets[kind] - before)))
        before = offsets[kind]
    return jumps

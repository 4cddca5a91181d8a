"""Identifiers. A run id is a UUIDv8 that says when it was made and in which lane its run lives, for life.

48 bits milliseconds │ 4 bits version 8 │ 12 bits lane │ 2 bits variant │ 62 random bits
"""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NewType
from uuid import UUID

from mainspring.errors import InvalidInput, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RunId = NewType("RunId", UUID)
Lane = NewType("Lane", int)


def run_id_bytes(count: int, lane: int, now: datetime) -> list[bytes]:
    """`count` new run ids of one lane, as 16 bytes each: a batch shares one call for its randomness."""
    milliseconds = int(now.timestamp() * 1000)
    prefix = milliseconds.to_bytes(6, "big") + (0x8000 | lane).to_bytes(2, "big")
    noise = os.urandom(8 * count)
    return [prefix + bytes((0x80 | noise[i] & 0x3F,)) + noise[i + 1 : i + 8] for i in range(0, 8 * count, 8)]


def lane_of(run_id: UUID) -> Lane:
    """The lane a run lives in, read from its id."""
    return Lane(int.from_bytes(run_id.bytes[6:8], "big") & 0x0FFF)


def by_lane(run_ids: Iterable[UUID]) -> list[tuple[Lane, list[UUID]]]:
    """Run ids lane by lane, in one order everywhere: two transactions over lanes never wait in a circle."""
    lanes: dict[Lane, list[UUID]] = {}
    for run_id in sorted(run_ids):
        lanes.setdefault(lane_of(run_id), []).append(run_id)
    return sorted(lanes.items())


def made_at(run_id: UUID) -> datetime:
    """When a run id was made: a lower bound for everything history says about the run."""
    return datetime.fromtimestamp(int.from_bytes(run_id.bytes[:6], "big") / 1000, UTC)


# Workers and schedulers write how they are doing into a lane of their own, so that one node of several has to be there
# for it. It is among the first, which every installation has: whoever knows the id knows the lane.
HOMES = tuple(Lane(lane) for lane in range(8))


def home_of(process_id: UUID) -> Lane:
    """The home lane of a worker or scheduler, read from its id."""
    return HOMES[process_id.bytes[-1] % len(HOMES)]


def homes_from(home: Lane) -> Sequence[Lane]:
    """All home lanes, this one first: where to go while it cannot be reached."""
    return HOMES[home:] + HOMES[:home]


def at_home(process_id: UUID, home: int) -> bytes:
    """An id like this one whose home is there: who watches over several workers beats for all of them in one lane."""
    return process_id.bytes[:-1] + bytes((home,))


def lane_of_key(tenant_id: int, key: str, lanes: int) -> Lane:
    """The lane of an idempotency key, and so of the run that carries it: the same in every process."""
    digest = hashlib.blake2b(f"{tenant_id}:{key}".encode(), digest_size=8).digest()
    return Lane(int.from_bytes(digest, "big") % lanes)


def parse_run_id(text: str | UUID, what: str = "run") -> RunId:
    """The id of a run, or of something else that is made like one, from what a person typed."""
    try:
        run_id = text if isinstance(text, UUID) else UUID(str(text))
        made_at(run_id)  # 48 bits can say the year 10,000, which nothing else here can
    except (ValueError, OverflowError):
        run_id = None
    if run_id is None or run_id.version != 8:
        raise InvalidInput(
            f"{shortened(text)} is not a {what} id.",
            code=f"invalid-{what}-id",
            hint=f"A {what} id is a UUID such as 0199a1b2-c3d4-8005-9f00-0123456789ab, as submit returned it.",
            field="id",
            value=shortened(text),
        )
    return RunId(run_id)

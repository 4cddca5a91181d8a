"""ParentResults of runs that become arguments of others which wait for them.

They are put into the arguments when the child is released. Of a child that gets many results, those that are there are
collected ahead, in one row for each batch of news: so when the last one has ended, little is left to do. Where whole
leases are completed, that happens at once (`tell_successes`); here it is done for what else ended.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mainspring.model.dependency import filled_in
from mainspring.model.ids import by_lane
from mainspring.model.payload import MAX_PAYLOAD_BYTES
from mainspring.store.history import recorded_since
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from mainspring.model.dependency import Path
    from mainspring.store.connection import Connection

MOST_BYTES = 8_000_000  # of results, in one transaction
WORTH_COLLECTING = 16  # results of one child, in one batch of news

TOO_LARGE = {
    "code": "inputs-do-not-fit",
    "message": "With the results of the runs that it waited for, its arguments are too large, or not what they were.",
}
RESULT_GONE = {
    "code": "result-gone",
    "message": "A run whose result is one of its arguments has succeeded, and history has forgotten that result.",
}

Places = list["Path"]
Values = defaultdict["UUID", list[tuple["Path", "bytes | msgspec.Raw"]]]  # results, and where they go
_PLACES = msgspec.json.Decoder(list[tuple[str | int, ...]])
_PLACES_OF_ALL = msgspec.json.Decoder(list[list[tuple[str | int, ...]]])
_RAW_LIST = msgspec.json.Decoder(list[msgspec.Raw])


class Input(NamedTuple):
    """Where the result of a run of a lane goes."""

    lane: int
    parent: UUID
    places: Places


class Awaited(NamedTuple):
    """What a child gets as arguments: results that history has, and so many bytes of collected ones, by lane."""

    inputs: list[Input]
    collected: dict[int, int]


class Filled(NamedTuple):
    """Arguments with results in them, by child; why others cannot have them; and whose turn is later.

    Somebody acts on those that are busy: they may have other arguments in a moment.
    """

    payloads: dict[UUID, bytes]
    errors: dict[UUID, dict[str, str]]
    later: set[UUID]
    busy: set[UUID]


# ── ahead ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def collect(connection: Connection, lane: int, ended: Iterable[tuple[UUID, UUID, str | None]]) -> set[UUID]:
    """Put results of parents that have succeeded together, for children that go on waiting; answers for which.

    The row of the first parent then stands for all of them.
    """
    wanted: defaultdict[UUID, list[Input]] = defaultdict(list)
    for parent, child, places in ended:
        if places is not None:
            wanted[child].append(Input(lane, parent, _PLACES.decode(places)))
    many = {child: own for child, own in wanted.items() if len(own) >= WORTH_COLLECTING}
    found = await _results(connection, many.values(), MOST_BYTES)
    chosen = _worth_keeping(many, found) if found.has_all else {}
    if chosen:
        await load("dependencies/collect").execute(
            connection,
            lane=lane,
            firsts=[own[0].parent for own in chosen.values()],
            children=list(chosen),
            inputs=[_as_text([place for each in own for place in each.places]) for own in chosen.values()],
            results=[_as_list(own, found.results) for own in chosen.values()],
        )
        others = [(each.parent, child) for child, own in chosen.items() for each in own[1:]]
        await load("dependencies/forget_pairs").execute(
            connection, lane=lane, parents=[parent for parent, _ in others], children=[child for _, child in others]
        )
    return set(chosen)


def _worth_keeping(wanted: Mapping[UUID, list[Input]], found: ParentResults) -> dict[UUID, list[Input]]:
    """Those all of whose results are there, and may still fit: each result is kept once for each of its places."""
    chosen: dict[UUID, list[Input]] = {}
    total = 0
    for child, own in wanted.items():
        size = _size(own, found.sizes)
        is_small = size <= MAX_PAYLOAD_BYTES and total + size <= MOST_BYTES
        if is_small and all(each.parent in found.results for each in own):
            chosen[child] = own
            total += size
    return chosen


def _size(own: Iterable[Input], sizes: Mapping[UUID, int]) -> int:
    return sum(sizes.get(each.parent, 0) * len(each.places) for each in own)


def _as_text(document: object) -> str:
    return msgspec.json.encode(document).decode()


def _as_list(own: Sequence[Input], results: Mapping[UUID, bytes]) -> bytes:
    """One result per place, as one list."""
    return b"[%b]" % b",".join(results[each.parent] for each in own for _ in each.places)


# ── at last ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def fill(connection: Connection, children: Mapping[UUID, Sequence[int]]) -> Filled:
    """Put results of parents into arguments: of so many children that what is read stays small."""
    awaited = await _awaited(connection, children)
    filled = Filled({}, {}, set(), set())
    found = await _results(connection, [each.inputs for each in awaited.values()], MOST_BYTES)
    chosen = _chosen(awaited, found.sizes, filled)
    if not found.has_all:
        found = await _results(connection, [each.inputs for each in chosen.values()], None)
    values = await _collected(connection, chosen)
    for child, each in chosen.items():
        values[child] += [(place, found.results[one.parent]) for one in each.inputs for place in one.places]
    for lane, some in by_lane(chosen):
        rows = await load("dependencies/payloads").fetch(connection, lane=lane, runs=some)
        filled.busy.update(set(some) - {row["id"] for row in rows})
        for row in rows:
            payload = filled_in(row["payload"], values[row["id"]])
            if payload is None:
                filled.errors[row["id"]] = TOO_LARGE
            else:
                filled.payloads[row["id"]] = payload
    return filled


async def _awaited(connection: Connection, children: Mapping[UUID, Sequence[int]]) -> dict[UUID, Awaited]:
    """By child, which results of its parents go where; those that get none are left out."""
    found: dict[UUID, Awaited] = {}
    for lane in sorted({*chain.from_iterable(children.values())}):
        some = [child for child, own in children.items() if lane in own]
        for row in await load("dependencies/inputs").fetch(connection, lane=lane, children=some):
            own = found.setdefault(row["child_id"], Awaited([], {}))
            if row["parents"] is not None:
                places = _PLACES_OF_ALL.decode(row["places"])
                own.inputs.extend(Input(lane, *each) for each in zip(row["parents"], places, strict=True))
            if row["collected"]:
                own.collected[lane] = row["collected"]
    return found


def _chosen(awaited: Mapping[UUID, Awaited], sizes: Mapping[UUID, int], filled: Filled) -> dict[UUID, Awaited]:
    """Those whose results are read now. The others' turn is later, or they never get theirs: noted in `filled`."""
    chosen: dict[UUID, Awaited] = {}
    total = 0
    for child, own in awaited.items():
        size = _size(own.inputs, sizes) + sum(own.collected.values())
        if any(each.parent not in sizes for each in own.inputs):
            filled.errors[child] = RESULT_GONE
        elif size > MAX_PAYLOAD_BYTES:
            filled.errors[child] = TOO_LARGE
        elif chosen and total + size > MOST_BYTES:
            filled.later.add(child)
        else:
            chosen[child] = own
            total += size
    return chosen


async def _collected(connection: Connection, chosen: Mapping[UUID, Awaited]) -> Values:
    """What was collected ahead, by child."""
    found: Values = defaultdict(list)
    for lane in sorted({lane for each in chosen.values() for lane in each.collected}):
        some = [child for child, each in chosen.items() if lane in each.collected]
        for row in await load("dependencies/collected").fetch(connection, lane=lane, children=some):
            places, results = _PLACES.decode(row["places"]), _RAW_LIST.decode(row["results"])
            found[row["child_id"]] += zip(places, results, strict=True)
    return found


class ParentResults(NamedTuple):
    """What runs returned that are in history, and how large that is; nothing but that, if it is too much."""

    sizes: dict[UUID, int]
    results: dict[UUID, bytes]

    @property
    def has_all(self) -> bool:
        return len(self.results) == len(self.sizes)


async def _results(connection: Connection, inputs: Iterable[Sequence[Input]], most_bytes: int | None) -> ParentResults:
    """What the parents of all of them returned, each asked for once."""
    lanes: defaultdict[int, set[UUID]] = defaultdict(set)
    for each in chain.from_iterable(inputs):
        lanes[each.lane].add(each.parent)
    found = ParentResults({}, {})
    for lane, parents in sorted(lanes.items()):
        row = await load("dependencies/results").fetchrow(
            connection, lane=lane, runs=list(parents), since=recorded_since(parents), most_bytes=most_bytes
        )
        if row is not None and row["runs"] is not None:
            found.sizes.update(zip(row["runs"], row["sizes"], strict=True))
            if row["results"] is not None:
                found.results.update(zip(row["runs"], row["results"], strict=True))
    return found

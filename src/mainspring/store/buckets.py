"""Tokens of gates with a rate: read and written by whoever releases runs there, under the lock of their lane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.model.rate import TokenBucket, whole_tokens
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mainspring.model.rate import Rate
    from mainspring.store.connection import Connection


async def filled(connection: Connection, home: int, rates: Mapping[str, Rate], now: float) -> dict[str, TokenBucket]:
    """The tokens of some gates, as they are now."""
    if not rates:
        return {}
    rows = await load("limits/tokens").fetch(connection, lane=home, gates=list(rates))
    known = {row["gate"]: TokenBucket(row["tokens"], row["at"]) for row in rows}
    return {gate: rate.filled(known.get(gate), now) for gate, rate in rates.items()}


async def spend(
    connection: Connection,
    home: int,
    buckets: Mapping[str, TokenBucket],
    passed: Mapping[str, int],
    rates: Mapping[str, Rate],
) -> None:
    """So many runs passed each gate."""
    left = {
        gate: bucket._replace(tokens=bucket.tokens - passed[gate]) for gate, bucket in buckets.items() if passed[gate]
    }
    if left:
        await load("limits/spend").execute(
            connection,
            lane=home,
            gates=list(left),
            tokens=[bucket.tokens for bucket in left.values()],
            instants=[bucket.at for bucket in left.values()],
            full=[bucket.at + rates[gate].seconds_until(rates[gate].capacity, bucket) for gate, bucket in left.items()],
        )


def until_next(
    buckets: Mapping[str, TokenBucket], passed: Mapping[str, int], rates: Mapping[str, Rate]
) -> dict[str, float]:
    """In how many seconds there is a token again, where all were taken: somebody may wait for it."""
    return {
        gate: rates[gate].seconds_until(1 + passed[gate], bucket)
        for gate, bucket in buckets.items()
        if not whole_tokens(bucket) or passed[gate] == whole_tokens(bucket)
    }

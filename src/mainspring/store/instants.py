"""Instants as connections with raw time speak them: microseconds since PostgreSQL's epoch, which is the year 2000."""

from __future__ import annotations

from datetime import UTC, datetime

from mainspring.clock import EPOCH as UNIX_EPOCH
from mainspring.model.policy import MICROSECOND

Micros = tuple[int]

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
UNIX_TO_POSTGRES = (EPOCH - UNIX_EPOCH) // MICROSECOND


def micros_of(at: datetime) -> Micros:
    return ((at - EPOCH) // MICROSECOND,)


def instant_of(micros: Micros) -> datetime:
    return EPOCH + micros[0] * MICROSECOND

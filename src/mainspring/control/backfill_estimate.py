"""How many occurrences a range of the past has, by a few looks at it: what is far too large is refused at once.

At some points, spread evenly over the range, it is seen how close together instants lie. That is an estimate, and a bad
one for schedules that fire in bursts; so it only refuses what is beyond doubt, and the rest is counted.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from statistics import fmean, stdev
from typing import TYPE_CHECKING, NamedTuple

from mainspring.errors import InvalidInput
from mainspring.model.backfill import MOST_OCCURRENCES, BackfillOrder

if TYPE_CHECKING:
    from datetime import datetime

    from mainspring.control.backfill_range import PastRange

LOOKS = 200
LOOKED_AT = 10  # instants, at each of them
GOLDEN = 0.6180339887498949  # its multiples are spread evenly, and meet no hour of the day more often than others
DOUBT = 3.0  # standard errors of the mean
MARGIN = 1.05  # what is less too large is counted, and then refused for certain


class Density(NamedTuple):
    """Instants per second: as many as there are beyond doubt, as estimated, and at most."""

    least: float
    mean: float
    most: float


def refuse_too_many(past: PastRange) -> None:
    """Raises if there are more instants than one backfill may be about, beyond doubt."""
    span, most = past.before - past.since, MOST_OCCURRENCES
    if span <= timedelta(seconds=most):  # there is no schedule that fires more often than once a second
        return
    density = _density(past, span)
    if density.least * span.total_seconds() > MARGIN * most:
        raise _too_many(past, density, span)


def _density(past: PastRange, span: timedelta) -> Density:
    seen = [_seen(past, past.since + span * (look * GOLDEN % 1.0), span / LOOKS) for look in range(LOOKS)]
    mean, doubt = fmean(seen), DOUBT * stdev(seen) / LOOKS**0.5
    return Density(mean - doubt, mean, mean + doubt)


def _seen(past: PastRange, begin: datetime, span: timedelta) -> float:
    """Instants per second from here on, up to so far, and up to so many."""
    end = min(begin + span, past.before)
    found = list(islice(past.between(begin, end), LOOKED_AT))
    if len(found) < LOOKED_AT:
        return len(found) / (end - begin).total_seconds()
    # From anywhere between two instants to the tenth after that, it is nine and a half times from one to the next.
    return (LOOKED_AT - 0.5) / max(1.0, (found[-1].nominal_at - begin).total_seconds())


def _too_many(past: PastRange, density: Density, span: timedelta) -> InvalidInput:
    part = timedelta(seconds=int(MOST_OCCURRENCES / density.most))
    is_forwards = past.order is BackfillOrder.FORWARDS
    limit = f"before {(past.since + part).isoformat()}" if is_forwards else f"since {(past.before - part).isoformat()}"
    about = float(f"{density.mean * span.total_seconds():.1e}")
    return InvalidInput(
        f"The range has about {about:,.0f} occurrences; a backfill is about {MOST_OCCURRENCES:,} at most.",
        code="backfill-too-large",
        hint=f"Backfill in parts: the first one {limit}.",
        field="before" if is_forwards else "since",
        rule=f"must leave at most {MOST_OCCURRENCES:,} occurrences",
    )

"""What is offered to whoever wrote something that is no schedule.

Readers say what may have been meant (`offers` of `fault`), each a rewriting of the text that they were given. None of
it is shown before the whole text that it would make was read: it must be a schedule, and must not be over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mainspring.errors import InvalidSchedule

LONGEST = 200


def show_offers(error: InvalidSchedule, shown: Callable[[str], str | None]) -> None:
    """Let the error say what can be offered: the first of its offers of which `shown` knows the whole text."""
    offers: Sequence[str] = error.fields.pop("offers", ())  # type: ignore[assignment]  # `fault` put it there
    offer = next(filter(None, (shown(each) for each in offers if len(each) <= LONGEST)), "")
    if offer:
        error.fields["suggestion"] = offer
        error.hint = " ".join(filter(None, (f"Did you mean {offer!r}?", error.hint)))


def nothing_shown(offer: str) -> None:
    """For those who cannot read the whole text."""

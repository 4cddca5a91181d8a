"""At which limits more may pass than before: those that were raised or removed, and breakers that have closed.

Nobody hints at their gates, which may be very many, and a change is to be in force at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.model.concurrency import MAX_LIMIT
from mainspring.store import limits

if TYPE_CHECKING:
    from mainspring.model.concurrency import LimitRule
    from mainspring.store.connection import Connection


class RaisedLimits:
    """Compares the limits there are with those there were at the last look; costs one row while nobody writes one."""

    def __init__(self) -> None:
        self._revision: str | None = None
        self._known: dict[int, LimitRule] = {}

    def forget(self) -> None:
        self._revision = None

    async def look(self, connection: Connection) -> list[LimitRule]:
        """Those at which more may pass, as they were before. The first look only learns what there is."""
        revision = await limits.revision(connection)
        if revision == self._revision:
            return []
        before = self._known if self._revision is not None else {}
        self._known = {rule.id: rule for rule in await limits.in_force(connection)}
        self._revision = revision
        return [rule for rule in before.values() if _admits_more(rule, self._known.get(rule.id))]


def _admits_more(before: LimitRule, now: LimitRule | None) -> bool:
    if now is None:
        return True
    return (now.most or MAX_LIMIT) > (before.most or MAX_LIMIT) or now.rate != before.rate

"""The lines a worker serves, and whose they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.model.actor import Tenant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mainspring.model.line import Line
    from mainspring.store.jobs import TenantLine


class Lines:
    """The lines a worker serves, by number: those of its queues whose labels it has, of all tenants.

    They come and never go; the weights of tenants change.
    """

    def __init__(self, *, queues: Iterable[str], labels: Iterable[str], installation: str = "") -> None:
        self._installation = installation
        self._queues = frozenset(queues)
        self._labels = frozenset(labels)
        self._served: dict[int, Line] = {}
        self._tenants: dict[int, int] = {}  # by line
        self._names: dict[int, str] = {}  # of tenants
        self._weights: dict[int, int] = {}
        self.weights_changed = 0  # so often
        self._met: set[int] = set()  # also those that are not for us: there is no need to look at them again

    def learn(self, found: Iterable[TenantLine]) -> None:
        """These are the lines there are."""
        for each in found:
            self._met.add(each.number)
            if each.line.is_served_by(self._queues, self._labels):
                self._served[each.number] = each.line
                self._tenants[each.number] = each.tenant_id
                self._names[each.tenant_id] = each.tenant
                self.weights_changed += self._weights.get(each.tenant_id, each.weight) != each.weight
                self._weights[each.tenant_id] = each.weight

    def is_news(self, number: int) -> bool:
        """Whether this line was not among those there were when they were last looked at."""
        return number not in self._met

    def tenant_of(self, number: int) -> int:
        return self._tenants[number]

    def tenant(self, number: int) -> Tenant:
        """Whose line this is."""
        tenant_id = self._tenants[number]
        return Tenant(tenant_id, self._names[tenant_id], self._installation)

    def weight_of(self, tenant_id: int) -> int:
        return self._weights[tenant_id]

    def __len__(self) -> int:
        return len(self._served)

    def __contains__(self, number: int) -> bool:
        return number in self._served

    def __iter__(self) -> Iterator[int]:
        return iter(self._served)

    def __getitem__(self, number: int) -> Line:
        return self._served[number]

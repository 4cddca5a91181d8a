"""In which order the hosts of a URL are asked."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mainspring.errors import InvalidInput
from mainspring.store.failures import unreachable
from mainspring.store.hosts import Host, Hosts
from mainspring.store.urls import checked_url, without_parameter

URL = "postgresql://ada@a,b,c/shop"
BALANCED = f"{URL}?load_balance_hosts=random"


class AskedHosts(Hosts):
    """Answers with the host it would have connected to."""

    def __init__(self, url: str, away: tuple[str, ...] = ()) -> None:
        super().__init__(url)
        self.away = away
        self.asked: list[str] = []

    async def find(self) -> str:
        return str(await self.connect())

    async def _try(self, host: Host | None, seconds: float, settings: dict[str, Any]) -> Any:
        assert host is not None
        self.asked.append(host.name)
        if host.name in self.away:
            raise unreachable("away")
        return host.name


async def test_the_last_good_host_is_asked_first() -> None:
    hosts = AskedHosts(URL, away=("a",))

    assert [await hosts.find() for _ in range(3)] == ["b", "b", "b"]
    assert hosts.asked == ["a", "b", "b", "b"]


async def test_connections_are_spread_over_all_hosts_where_the_url_says_so() -> None:
    hosts = AskedHosts(BALANCED)
    found = Counter([await hosts.find() for _ in range(300)])

    assert set(found) == {"a", "b", "c"}
    assert min(found.values()) > 50
    assert len(hosts.asked) == 300


async def test_a_host_that_is_away_is_asked_after_the_others() -> None:
    hosts = AskedHosts(BALANCED, away=("a",))
    while "a" not in hosts.asked:
        await hosts.find()
    asked = len(hosts.asked)

    assert {await hosts.find() for _ in range(50)} == {"b", "c"}
    assert "a" not in hosts.asked[asked:]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (BALANCED, URL),
        (f"{BALANCED}&sslmode=disable", f"{URL}?sslmode=disable"),
        (f"{URL}?sslmode=disable&load_balance_hosts=random", f"{URL}?sslmode=disable"),
        (URL, URL),
    ],
)
def test_the_driver_does_not_see_what_it_does_not_know(url: str, expected: str) -> None:
    assert without_parameter(url, "load_balance_hosts") == expected


def test_another_way_to_balance_is_refused() -> None:
    assert checked_url(BALANCED) == BALANCED
    with pytest.raises(InvalidInput, match="must have random or disable as its load_balance_hosts"):
        checked_url(f"{URL}?load_balance_hosts=evenly")

"""The arithmetic of the comparison: how many jobs, medians over rounds, who is best, by how much Mainspring leads."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.peers.performance import Rates

MAINSPRING = "mainspring"
FIELDS = ("mainspring_per_s", "best_peer", "best_peer_per_s", "lead", "rates", "skipped")
FEWEST, MOST = 200, 400_000
SUBMIT_SHARE = 1.5  # how much longer than draining the submitting may take


def jobs_for(rates: Rates, seconds: float) -> int:
    """How many jobs keep a peer busy for so long; fewer when it is slow to submit them."""
    wanted = seconds * min(rates.drain, SUBMIT_SHARE * rates.submit)
    return round(min(MOST, max(FEWEST, wanted)))


def summary(rounds: Mapping[str, Sequence[Rates]], skipped: Mapping[str, str]) -> dict[str, object]:
    """What the benchmark promises to programs; `lead` is the ratio of the medians of the drain rates."""
    rates = {name: median_rates(each) for name, each in rounds.items()}
    ours = rates[MAINSPRING]["drain"]
    peers = {name: each["drain"] for name, each in rates.items() if name != MAINSPRING}
    best = max(peers, key=lambda name: peers[name], default=None)
    return {
        "mainspring_per_s": ours,
        "best_peer": best,
        "best_peer_per_s": peers[best] if best else None,
        "lead": ours / peers[best] if best else None,
        "rates": rates,
        "skipped": dict(skipped),
    }


def median_rates(rounds: Sequence[Rates]) -> dict[str, float]:
    return {
        "submit": statistics.median(each.submit for each in rounds),
        "drain": statistics.median(each.drain for each in rounds),
    }

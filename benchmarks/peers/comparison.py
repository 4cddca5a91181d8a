"""Peers: the same no-op work through Mainspring and other job queues, submit and drain rates side by side."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from benchmarks.harness import bar, durable_server, say
from benchmarks.peers import figures
from benchmarks.peers.environments import environment_of
from benchmarks.peers.figures import FIELDS, jobs_for, summary
from benchmarks.peers.peer import PeerFailed
from benchmarks.peers.performance import Rates, perform
from benchmarks.peers.roster import MAINSPRING, PEERS, PROCESSES
from benchmarks.peers.stage import stage_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from benchmarks.peers.peer import Peer
    from mainspring.store.embedded import EmbeddedServer

__all__ = ["FIELDS", "run", "show"]

EVERYBODY = (MAINSPRING, *PEERS)
BY_NAME = {peer.name: peer for peer in EVERYBODY}
FIRST_LOOK, LOOK_SECONDS, LOOK_PATIENCE = 500, 1.0, 4.0
PATIENCE = 3  # how many times as long as hoped a round may take


async def run(
    seconds: float, *, only: Collection[str] = (), jobs: int | None = None, rounds: int = 3
) -> dict[str, Any]:
    """`seconds` is how long each peer should drain in each round; `jobs` gives everybody the same number instead."""
    peers = _chosen(only)
    async with durable_server() as server:
        comparison = Comparison(server, peers)
        await comparison.prepare()
        await comparison.calibrate(seconds, jobs)
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            await comparison.round(number, seconds)
    return comparison.findings()


def _chosen(only: Collection[str]) -> tuple[Peer, ...]:
    if unknown := sorted(set(only) - set(BY_NAME)):
        raise SystemExit(f"There is no peer called {', '.join(unknown)}. Choose from: {', '.join(BY_NAME)}.")
    return tuple(peer for peer in EVERYBODY if not only or peer.name in only or peer is MAINSPRING)


class Comparison:
    """Who is still taking part, with how many jobs, and what was measured so far."""

    def __init__(self, server: EmbeddedServer, peers: tuple[Peer, ...]) -> None:
        self._server = server
        self._peers = peers
        self._jobs: dict[str, int] = {}
        self._rounds: dict[str, list[Rates]] = {peer.name: [] for peer in peers}
        self._skipped: dict[str, str] = {}

    async def prepare(self) -> None:
        for peer in self._taking_part:
            try:
                await asyncio.to_thread(environment_of, peer)
            except PeerFailed as failure:
                self._leave_out(peer, failure)

    async def calibrate(self, seconds: float, jobs: int | None) -> None:
        """Find out how many jobs each can do in the time, in two looks: a few, then about a second's worth."""
        for peer in self._taking_part:
            if jobs is not None:
                self._jobs[peer.name] = jobs
            elif (rates := await self._perform(peer, FIRST_LOOK, LOOK_PATIENCE)) is not None:
                if rates.drain > FIRST_LOOK / LOOK_SECONDS:
                    rates = await self._perform(peer, jobs_for(rates, LOOK_SECONDS), LOOK_PATIENCE) or rates
                self._jobs[peer.name] = jobs_for(rates, seconds)
                say(f"  {peer.title}: about {rates.drain:,.0f}/s, so {self._jobs[peer.name]:,} jobs in each round")

    async def round(self, number: int, seconds: float) -> None:
        """Everybody once; each round begins with another peer, so that nobody always has the same neighbour's heat."""
        peers = self._taking_part
        start = number % len(peers)
        for peer in [*peers[start:], *peers[:start]]:
            rates = await self._perform(peer, self._jobs[peer.name], PATIENCE * seconds)
            if rates is not None:
                self._rounds[peer.name].append(rates)
                cut = "" if rates.is_complete else " (cut off before the end)"
                say(f"  {peer.title}: submitted {rates.submit:,.0f}/s, drained {rates.drain:,.0f}/s{cut}")

    def findings(self) -> dict[str, Any]:
        measured = {name: each for name, each in self._rounds.items() if each and name not in self._skipped}
        if figures.MAINSPRING not in measured:
            raise SystemExit(f"Mainspring itself could not be measured: {self._skipped.get(figures.MAINSPRING)}")
        return summary(measured, self._skipped)

    @property
    def _taking_part(self) -> list[Peer]:
        return [peer for peer in self._peers if peer.name not in self._skipped]

    async def _perform(self, peer: Peer, jobs: int, patience: float) -> Rates | None:
        try:
            async with stage_of(peer, environment_of(peer), self._server) as stage:
                return await perform(stage, jobs, patience=patience)
        except PeerFailed as failure:
            self._leave_out(peer, failure)
            return None

    def _leave_out(self, peer: Peer, failure: PeerFailed) -> None:
        self._skipped[peer.name] = str(failure)
        say(f"  {peer.title} is left out: it {failure}")


def show(numbers: dict[str, Any]) -> str:
    rates: dict[str, dict[str, float]] = numbers["rates"]
    ranking = sorted(rates, key=lambda name: -rates[name]["drain"])
    lines = [_row("", "version", "submit/s", "drain/s", "jobs are kept in", "if a worker dies", "kept afterwards")]
    lines += [_row_of(BY_NAME[name], rates[name]) for name in ranking]
    for what in ("drain", "submit"):
        most = max(each[what] for each in rates.values())
        lines += ["", *(bar(f"{what} {BY_NAME[name].title}", rates[name][what], most, "jobs/s") for name in ranking)]
    left_out = [f"  {BY_NAME[name].title} is left out: it {why}" for name, why in numbers["skipped"].items()]
    return "\n".join([*lines, "", *left_out, *_verdict(numbers)])


def _row_of(peer: Peer, rates: dict[str, float]) -> str:
    submit, drain = (f"{rates[what]:,.0f}" for what in ("submit", "drain"))
    return _row(peer.title, peer.version, submit, drain, peer.keeps, peer.delivery, peer.afterwards)


def _row(title: str, version: str, submit: str, drain: str, keeps: str, delivery: str, afterwards: str) -> str:
    return f"  {title:<16} {version:<8} {submit:>9} {drain:>9}  {keeps:<27}  {delivery:<24}  {afterwards}"


def _verdict(numbers: dict[str, Any]) -> list[str]:
    how = f"  {PROCESSES} processes submit, then {PROCESSES} work; medians of the rounds"
    if numbers["best_peer"] is None:
        return [how]
    return [how, f"  Mainspring drains {numbers['lead']:.2f} times as fast as {BY_NAME[numbers['best_peer']].title}"]

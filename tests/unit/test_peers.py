"""The comparison with peers: its arithmetic and its promises, without any peer installed."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from benchmarks.harness import as_json
from benchmarks.peers import comparison, figures
from benchmarks.peers.peer import Peer, PeerFailed
from benchmarks.peers.performance import Rates, Reading, drain_rate, submit_rate
from benchmarks.peers.programs import counting
from benchmarks.peers.programs.batching import BATCH, batches, many_at_once
from benchmarks.peers.roster import PEERS
from benchmarks.producer import Report

ROUNDS = {
    "mainspring": [Rates(90_000, 30_000), Rates(80_000, 36_000), Rates(70_000, 90_000)],
    "pgqueuer": [Rates(50_000, 12_000), Rates(40_000, 1_000), Rates(60_000, 13_000)],
    "celery": [Rates(3_000, 1_500), Rates(3_100, 1_600), Rates(2_900, 1_400)],
}


def findings(skipped: dict[str, str] | None = None) -> dict[str, Any]:
    return figures.summary(ROUNDS, skipped or {})


def test_rates_are_medians_of_the_rounds() -> None:
    assert findings()["rates"] == {
        "mainspring": {"submit": 80_000, "drain": 36_000},
        "pgqueuer": {"submit": 50_000, "drain": 12_000},
        "celery": {"submit": 3_000, "drain": 1_500},
    }


def test_the_lead_is_over_the_peer_that_drains_fastest() -> None:
    numbers = findings()

    assert numbers["mainspring_per_s"] == 36_000
    assert (numbers["best_peer"], numbers["best_peer_per_s"]) == ("pgqueuer", 12_000)
    assert numbers["lead"] == 3.0


def test_without_peers_there_is_no_lead() -> None:
    numbers = figures.summary({"mainspring": ROUNDS["mainspring"]}, {})

    assert (numbers["best_peer"], numbers["best_peer_per_s"], numbers["lead"]) == (None, None, None)
    assert "Mainspring" in comparison.show(numbers)


def test_the_json_object_has_the_promised_fields() -> None:
    numbers = findings({"huey": "could not be installed: no network"})
    told = json.loads(as_json({field: numbers[field] for field in comparison.FIELDS}))

    assert list(told) == ["mainspring_per_s", "best_peer", "best_peer_per_s", "lead", "rates", "skipped"]
    assert told["skipped"] == {"huey": "could not be installed: no network"}
    assert set(told["rates"]["celery"]) == {"submit", "drain"}


def test_people_see_everybody_with_version_and_whoever_is_left_out() -> None:
    shown = comparison.show(findings({"huey": "could not be installed: no network"}))

    assert "3.00 times as fast as PgQueuer" in shown
    assert "Huey is left out: it could not be installed: no network" in shown
    assert all(peer.version in shown for peer in PEERS if peer.name in ROUNDS)


@pytest.mark.parametrize(
    ("rates", "seconds", "jobs"),
    [
        (Rates(90_000, 30_000), 3, 90_000),
        (Rates(1_000, 30_000), 3, 4_500),  # slow to submit
        (Rates(5_000, 20), 3, figures.FEWEST),
        (Rates(900_000, 900_000), 10, figures.MOST),
    ],
)
def test_a_peer_gets_as_many_jobs_as_keep_it_busy(rates: Rates, seconds: float, jobs: int) -> None:
    assert figures.jobs_for(rates, seconds) == jobs


def test_submitting_takes_from_the_first_beginning_to_the_last_end() -> None:
    reports = [
        Report(submitted=1_100, timed=1_000, began=10.0, ended=11.0),
        Report(submitted=1_100, timed=1_000, began=10.5, ended=12.0),
    ]

    assert submit_rate(reports) == 1_000


def test_draining_counts_what_was_executed_while_the_clock_ran() -> None:
    assert drain_rate(Reading(10.0, 200), Reading(12.0, 5_200)) == 2_500


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_peer_is_pinned_and_has_its_program(peer: Peer) -> None:
    programs = Path(counting.__file__).parent

    assert all("==" in each for each in peer.requirements)
    assert all("@" in each for each in peer.packages)
    assert peer.submit or (programs / f"{peer.name}_jobs.py").exists()


def test_an_unknown_peer_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(SystemExit, match=r"no peer called selery\. Choose from: mainspring, .*celery"):
        comparison._chosen(["selery"])


def test_mainspring_is_always_among_the_chosen() -> None:
    assert [peer.name for peer in comparison._chosen(["celery"])] == ["mainspring", "celery"]


async def test_a_peer_that_cannot_be_installed_is_left_out_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def environment_of(peer: Any) -> None:
        if peer.name == "celery":
            raise PeerFailed("could not be installed: no network")

    monkeypatch.setattr(comparison, "environment_of", environment_of)
    compared = comparison.Comparison(None, comparison._chosen(["celery", "huey"]))  # type: ignore[arg-type]
    await compared.prepare()

    assert [peer.name for peer in compared._taking_part] == ["mainspring", "huey"]
    assert compared._skipped == {"celery": "could not be installed: no network"}


def test_counting_is_exact_with_many_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(counting.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr(counting, "_count", None)

    def count() -> None:
        for _ in range(1_000):
            counting.count_one()

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [int.from_bytes(path.read_bytes(), "little") for path in tmp_path.iterdir()] == [8_000]


def test_batches_add_up() -> None:
    assert list(batches(2 * BATCH + 7)) == [BATCH, BATCH, 7]
    assert list(batches(0)) == []


async def test_many_at_once_submits_each_once() -> None:
    submitted = []

    async def submit_one() -> None:
        await asyncio.sleep(0)
        submitted.append(1)

    await many_at_once(submit_one, 1_234)

    assert len(submitted) == 1_234

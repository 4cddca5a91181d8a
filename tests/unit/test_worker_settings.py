"""How a worker may be set up: queues with weights, labels, and what a refusal says."""

from __future__ import annotations

from typing import Any

import pytest

from mainspring.cli.parsing import parse_weights, parse_words
from mainspring.cli.workers import announcement, chosen_queues, weights_of
from mainspring.errors import InvalidInput
from mainspring.worker.settings import MOST_THREADS, THREADS_PER_CORE, WorkerSettings


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"queues": ("mail", "reports"), "weights": {"mail": 3}}, "invalid-weights"),
        ({"queues": ("mail",), "weights": {"mail": 3, "reports": 1}}, "invalid-weights"),
        ({"queues": ("mail",), "weights": {"mail": 0}}, "invalid-weights"),
        ({"queues": ("mail",), "weights": {"mail": 1_001}}, "invalid-weights"),
        ({"queues": ("mail",), "weights": {"mail": 1.5}}, "invalid-weights"),
        ({"queues": ("mail",), "weights": {"mail": True}}, "invalid-weights"),
        ({"threads": 0}, "invalid-threads"),
        ({"threads": True}, "invalid-threads"),
        ({"labels": ("a b",)}, "invalid-label"),
        ({"labels": ("delivery=at_most_once",)}, "invalid-label"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        WorkerSettings(**options)

    assert caught.value.code == code
    assert {"field", "value", "rule"} <= set(caught.value.fields)


def test_there_are_a_few_threads_for_each_core_unless_told() -> None:
    assert 1 <= WorkerSettings().thread_count <= MOST_THREADS
    assert WorkerSettings(threads=200).thread_count == 200


@pytest.mark.parametrize(("cores", "threads"), [(3, 3 * THREADS_PER_CORE), (None, THREADS_PER_CORE)])
def test_where_a_process_cannot_ask_which_cores_it_has_all_of_them_count(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, threads: int
) -> None:
    monkeypatch.delattr("os.sched_getaffinity", raising=False)  # as on macOS
    monkeypatch.setattr("os.cpu_count", lambda: cores)

    assert WorkerSettings().thread_count == threads


@pytest.mark.parametrize(
    ("asked", "queues", "weights"),
    [
        (None, ["billing", "mail"], {}),
        ("mail", ["mail"], {}),
        ("mail, reports,mail", ["mail", "reports"], {}),
        ("mail=3,reports=1", ["mail", "reports"], {"mail": 3, "reports": 1}),
        ("mail=3,reports", ["mail", "reports"], {"mail": 3, "reports": 1}),
    ],
)
def test_queues_are_written_with_commas_and_weights(
    asked: str | None, queues: list[str], weights: dict[str, int]
) -> None:
    chosen = chosen_queues(asked, ["billing", "mail"])

    assert (list(chosen), weights_of(chosen)) == (queues, weights)


@pytest.mark.parametrize("text", ["mail=", "mail=much", "mail=-1", "mail=1.5", "mail=" + "9" * 10, "mail=\u00b2"])
def test_a_weight_is_a_whole_number(text: str) -> None:
    with pytest.raises(InvalidInput, match="must have a whole number as its weight") as caught:
        parse_weights(text, "queues")

    assert (caught.value.code, caught.value.hint) == ("invalid-queues", "For example: mail=3,reports=1")


def test_words_are_written_with_commas() -> None:
    assert parse_words("gpu, eu,,gpu") == ("gpu", "eu")
    assert parse_words("") == ()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (WorkerSettings(), "1 worker process for shop:app; Ctrl-C stops"),
        (WorkerSettings(processes=3), "3 worker processes for shop:app; Ctrl-C stops"),
        (WorkerSettings(autoscale=(1, 8)), "1 to 8 worker processes for shop:app; Ctrl-C stops"),
    ],
)
def test_what_is_about_to_run_is_announced(settings: WorkerSettings, words: str) -> None:
    assert announcement("shop:app", settings) == words

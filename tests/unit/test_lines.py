"""Lines: a queue, what it requires of workers, and who serves it."""

from __future__ import annotations

from mainspring.model.line import Delivery, Line
from mainspring.worker.lines import Lines

from .hands import tenant_lines

PLAIN, GPU, GPU_IN_EUROPE = Line("mail"), Line("mail", ("gpu",)), Line("mail", ("eu", "gpu"))
ONCE = Line("mail", ("gpu",), Delivery.AT_MOST_ONCE)


def test_a_line_is_stored_as_its_requirements_and_comes_back() -> None:
    for line in (PLAIN, GPU, GPU_IN_EUROPE, ONCE, Line("mail", (), Delivery.TRANSACTIONAL)):
        assert Line.of("mail", line.requirements) == line

    assert PLAIN.requirements == []
    assert ONCE.requirements == ["delivery=at_most_once", "gpu"]


def test_a_mode_of_delivery_that_is_not_known_is_a_label_nobody_has() -> None:
    line = Line.of("mail", ["delivery=by_pigeon", "gpu"])

    assert line == Line("mail", ("delivery=by_pigeon", "gpu"))
    lines = Lines(queues=["mail"], labels=["gpu"])
    lines.learn(tenant_lines({line: 1}))
    assert list(lines) == []


def test_only_what_is_delivered_at_least_once_is_claimed_in_batches() -> None:
    assert [mode for mode in Delivery if not Line("mail", (), mode).is_claimed_singly] == [Delivery.AT_LEAST_ONCE]


def test_a_worker_serves_the_lines_of_its_queues_whose_labels_it_has() -> None:
    lines = Lines(queues=["mail"], labels=["gpu", "big"])
    lines.learn(tenant_lines({PLAIN: 1, GPU: 2, GPU_IN_EUROPE: 3, ONCE: 4, Line("other"): 5}))

    assert list(lines) == [1, 2, 4]
    assert lines[4] == ONCE


def test_a_line_is_news_until_it_was_looked_at() -> None:
    lines = Lines(queues=["mail"], labels=[])
    lines.learn(tenant_lines({PLAIN: 1, GPU: 2}))

    assert [lines.is_news(number) for number in (1, 2, 3, 3)] == [False, False, True, True]
    lines.learn(tenant_lines({Line("other"): 3}))
    assert not lines.is_news(3), "though it is not for us"

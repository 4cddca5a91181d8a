"""What a worker keeps of what an isolated run prints."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest

from mainspring.model.report import MAX_LOG_BYTES
from mainspring.store.reports import LeasedAttempt
from mainspring.worker.isolation.receiver import MAX_LINE_BYTES, ReportReceiver
from mainspring.worker.report import OVERHEAD_BYTES, AttemptReport


class Reporter:
    """Never collects; counts how often it is asked for the time: once for each line that is looked at."""

    def __init__(self) -> None:
        self.asked = 0

    def now_micros(self) -> int:
        self.asked += 1
        return 0

    def call(self, report: AttemptReport) -> None: ...


@pytest.fixture
def reporter() -> Reporter:
    return Reporter()


@pytest.fixture
def report(reporter: Reporter) -> AttemptReport:
    return AttemptReport(reporter, LeasedAttempt(0, UUID(int=1), 0, UUID(int=2), 1, 1))  # type: ignore[arg-type]


@pytest.fixture
def receiver(report: AttemptReport) -> ReportReceiver:
    return ReportReceiver(lambda: report, keeps_output=True)


def texts(report: AttemptReport) -> list[str]:
    return [text for part in report.parts() for _, _, _, text in msgspec.json.decode(part.lines)]


def test_lines_are_put_together_stream_by_stream(receiver: ReportReceiver, report: AttemptReport) -> None:
    receiver.on_output("stdout", b"one\ntw")
    receiver.on_output("stderr", b"oops\r\n")
    receiver.on_output("stdout", b"o\nthree")
    receiver.close()

    assert texts(report) == ["one", "oops", "two", "three"]


def test_what_no_store_can_keep_is_replaced(receiver: ReportReceiver, report: AttemptReport) -> None:
    receiver.on_output("stdout", b"a\0b\xffc\n")

    assert texts(report) == ["a\ufffdb\ufffdc"]


def test_a_line_without_an_end_is_cut(receiver: ReportReceiver, report: AttemptReport) -> None:
    receiver.on_output("stdout", b"x" * (MAX_LINE_BYTES + 1))

    assert [text[-1] for text in texts(report)] == ["…"]


@pytest.mark.parametrize("flood", [b"y\n", b"\n", b"a line of some length\n"])
def test_a_flood_costs_no_more_than_what_is_kept_of_it(
    receiver: ReportReceiver, report: AttemptReport, reporter: Reporter, flood: bytes
) -> None:
    """`yes` prints gigabytes a second; the loop that hears it has other runs to serve."""
    for _ in range(10):
        receiver.on_output("stdout", flood * 50_000)

    assert texts(report)[-1].startswith("… truncated")
    assert reporter.asked <= MAX_LOG_BYTES // OVERHEAD_BYTES + 2


def test_a_line_may_be_logged_while_another_one_is(report: AttemptReport) -> None:
    """The collector runs when it likes, and what it destroys may log its end."""

    class Lines(list[Any]):
        def append(self, line: Any) -> None:
            super().append(line)
            if len(self) == 1:  # stands for the collector
                report.log("INFO", "inner", "the end of something")

    report._lines = Lines()
    report.log("INFO", "outer", "a line")

    assert [text for _, _, _, text in report._lines] == ["a line", "the end of something"]

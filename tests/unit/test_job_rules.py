"""The rules for names and options of jobs and runs: what is allowed, and what a refusal says."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from mainspring import Mainspring
from mainspring.errors import InvalidInput
from mainspring.model.job import (
    EARLIEST,
    LATEST,
    MAX_DELAY,
    MAX_LABELS,
    MAX_TAGS,
    JobDefinition,
    checked_at,
    checked_delay,
    checked_delivery,
    checked_key,
    checked_labels,
    checked_max_age,
    checked_name,
    checked_priority,
    checked_reason,
    checked_tags,
    content_digest,
    definition_of,
)
from mainspring.model.policy import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

MICROSECOND = timedelta(microseconds=1)


class ZoneWithoutOffset(tzinfo):
    def utcoffset(self, _: datetime | None) -> timedelta | None:
        return None

    dst = utcoffset

    def tzname(self, _: datetime | None) -> str:
        return "nowhere"


def refusal(check: Callable[..., Any], *values: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        check(*values)
    assert len(str(caught.value)) < 300
    return caught.value


# ── names ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["a", "_", "7", "send_mail", "billing/send:v2.1-beta", "a" * 100])
def test_names_may_have_letters_digits_and_some_marks(name: str) -> None:
    assert checked_name(name, "job") == name


@pytest.mark.parametrize(
    "name", ["", "a" * 101, "-a", ".a", "a b", "a\n", "é", "a\0", "\ud800", "x;drop", 7, None, b"a", ["a"]]
)
def test_other_names_are_refused(name: Any) -> None:
    error = refusal(checked_name, name, "queue")

    assert (error.code, error.fields["field"]) == ("invalid-queue", "queue")
    str(error).encode()


# ── priorities ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("priority", [0, 5, 9])
def test_priorities_go_from_0_to_9(priority: int) -> None:
    assert checked_priority(priority) == priority


@pytest.mark.parametrize("priority", [-1, 10, 10**400, 5.0, "5", True, None])
def test_other_priorities_are_refused(priority: Any) -> None:
    assert refusal(checked_priority, priority).code == "invalid-priority"


# ── instants ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "at", [None, EARLIEST, LATEST, datetime(2031, 3, 30, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")), datetime.now(UTC)]
)
def test_an_instant_may_be_in_any_zone(at: datetime | None) -> None:
    assert checked_at(at) == at


@pytest.mark.parametrize("at", [datetime(2031, 1, 1), datetime(2031, 1, 1, tzinfo=ZoneWithoutOffset())])  # noqa: DTZ001
def test_an_instant_without_a_zone_is_refused_with_an_example(at: datetime) -> None:
    assert "ZoneInfo('Europe/Berlin')" in str(refusal(checked_at, at))


@pytest.mark.parametrize(
    "at",
    [
        EARLIEST - MICROSECOND,
        LATEST + MICROSECOND,
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=12))),
    ],
)
def test_an_instant_out_of_range_is_refused(at: datetime) -> None:
    assert "between the years 1970 and 9000" in str(refusal(checked_at, at))


@pytest.mark.parametrize("at", [date(2031, 1, 1), "2031-01-01T00:00:00Z", 0])
def test_what_is_not_an_instant_is_refused(at: Any) -> None:
    assert refusal(checked_at, at).code == "invalid-at"


# ── spans ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("delay", "seconds"), [(None, None), (0, 0.0), (1.5, 1.5), (timedelta(minutes=1), 60.0)])
def test_a_delay_is_a_span_or_seconds(delay: Any, seconds: float | None) -> None:
    assert checked_delay(delay) == seconds


def test_a_delay_may_be_as_long_as_ten_years_and_no_longer() -> None:
    assert checked_delay(MAX_DELAY) == MAX_DELAY.total_seconds()
    assert refusal(checked_delay, MAX_DELAY + MICROSECOND).code == "invalid-delay"


@pytest.mark.parametrize(
    "delay",
    [-1, -0.001, -(10**400), timedelta(seconds=-1), timedelta.max, 10**400, float("inf"), float("-inf"), float("nan")],
)
def test_negative_endless_and_undefined_delays_are_refused(delay: Any) -> None:
    assert refusal(checked_delay, delay).code == "invalid-delay"


@pytest.mark.parametrize("delay", [True, "5", [], datetime(2031, 1, 1, tzinfo=UTC)])
def test_what_is_not_a_span_is_refused(delay: Any) -> None:
    assert "must be a timedelta or a number of seconds" in str(refusal(checked_delay, delay))


def test_a_run_may_not_be_too_old_from_the_beginning() -> None:
    assert refusal(checked_max_age, 0).code == "invalid-max-age"
    assert checked_max_age(0.001) == 0.001


# ── tags and keys ───────────────────────────────────────────────────────────────────────────────────────────────


def test_tags_are_kept_once_and_in_order() -> None:
    assert checked_tags(["b", "a", "b"]) == ["b", "a"]
    assert checked_tags([]) is checked_tags(None) is None


def test_as_many_tags_as_allowed_and_one_more() -> None:
    tags = [f"tag {n}" for n in range(MAX_TAGS + 1)]

    assert checked_tags(tags[:-1]) == tags[:-1]
    assert refusal(checked_tags, tags).code == "invalid-tags"


def test_tags_by_the_thousand_are_counted_and_not_repeated_in_the_message() -> None:
    assert str(refusal(checked_tags, [str(n) for n in range(5_000)])) == "tags is '5000 tags'; it must be at most 50."


@pytest.mark.parametrize(
    "tags", ["abc", 7, [7], [None], [""], ["x" * 101], ["\0"], ["\ud800"], [["a"]], [{"a": 1}], b"abc"]
)
def test_other_tags_are_refused(tags: Any) -> None:
    assert refusal(checked_tags, tags).code == "invalid-tags"


def test_labels_are_a_set() -> None:
    assert checked_labels(["gpu", "eu", "gpu"]) == checked_labels({"eu", "gpu"}) == ("eu", "gpu")
    assert len(checked_labels(f"l{number}" for number in range(MAX_LABELS))) == MAX_LABELS


@pytest.mark.parametrize(
    "labels", ["gpu", 7, None, [7], [""], ["a b"], ["x" * 101], ["delivery=at_most_once"], [f"l{n}" for n in range(11)]]
)
def test_other_labels_are_refused(labels: Any) -> None:
    assert refusal(checked_labels, labels).code in ("invalid-labels", "invalid-label")


@pytest.mark.parametrize("delivery", ["exactly_once", "", None, 1, True])
def test_other_modes_of_delivery_are_refused(delivery: Any) -> None:
    error = refusal(checked_delivery, delivery)

    assert error.code == "invalid-delivery"
    assert error.fields["rule"] == "must be one of at_least_once, at_most_once, transactional"


@pytest.mark.parametrize("key", ["", "x" * 201, "\0", "\udc00", 7, b"k"])
def test_keys_that_cannot_be_stored_are_refused(key: Any) -> None:
    assert refusal(checked_key, key).code == "invalid-key"


def test_keys_may_be_any_text() -> None:
    assert checked_key("Rechnung Nr. 7 🧾") == "Rechnung Nr. 7 🧾"
    assert checked_key("x" * 200) == "x" * 200


def test_a_reason_may_be_empty_but_not_endless() -> None:
    assert checked_reason("") == ""
    assert refusal(checked_reason, "x" * 1_001).code == "invalid-reason"


def test_the_same_content_has_the_same_digest() -> None:
    assert content_digest("a", 1, None) == content_digest("a", 1, None)
    assert content_digest("a", 1, None) != content_digest("a", None, 1)


# ── definitions ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_definition_comes_back_from_its_document() -> None:
    definition = JobDefinition(
        name="send", queue="mail", priority=2, retry=RetryPolicy(max_attempts=1), max_age=timedelta(hours=1)
    )

    assert definition_of(definition.as_document()) == definition


def test_what_a_newer_program_added_to_a_definition_is_passed_over() -> None:
    document = JobDefinition(name="send").as_document()

    assert definition_of(document | {"colour": "blue"}) == JobDefinition(name="send")


@pytest.mark.parametrize(
    "options", [{"queue": "a b"}, {"priority": 11}, {"max_age": timedelta(0)}, {"on_disconnect": "panic"}]
)
def test_a_job_is_checked_when_it_is_defined(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Mainspring().job(**options)(lambda: None)


def test_a_name_is_registered_once() -> None:
    app = Mainspring()
    app.job(name="send")(lambda: None)

    with pytest.raises(InvalidInput, match="already registered"):
        app.job(name="send")(lambda: None)


def test_a_run_starts_at_one_time() -> None:
    job = Mainspring().job(name="send")(lambda: None)

    with pytest.raises(InvalidInput, match="Both at and delay"):
        job.options(at=datetime.now(UTC), delay=1)

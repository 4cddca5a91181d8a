"""`mainspring schedule create`, `list`, `show`, `history` and acts on schedules, as programs and people meet them."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.store.scheduling import Firing

from mainspring import Mainspring
from mainspring.testing import FrozenClock

from .test_cli import HOSTILE, NOWHERE, ROOT, mainspring, refused
from .test_cli_lists import on_a_terminal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.store.connection import Connection

    from .command_server import Answer

EVENING = datetime(2031, 1, 6, 19, 30, tzinfo=UTC)  # a Monday; half past eight in Berlin


class Office:
    """An application with a job, and the command line on its database."""

    def __init__(self, app: Mainspring, url: str) -> None:
        self.app, self.url = app, url

        @app.job
        async def report(day: str = "") -> str:
            return day

        self.report = report

    def run(self, *words: str) -> Any:
        answer = self.answer(*words, "-o", "json")
        assert answer.code == 0, answer
        return answer.document

    def says(self, *words: str) -> str:
        answer = self.answer(*words)
        assert answer.code == 0, answer
        assert "\x1b" not in answer.out + answer.err
        return answer.out

    def answer(self, *words: str) -> Answer:
        return mainspring("schedule", *words, "--database-url", self.url)

    def refused(self, *words: str) -> dict[str, Any]:
        return refused("schedule", *words, "--database-url", self.url)

    def on_a_terminal(self, columns: int, *words: str) -> list[str]:
        return on_a_terminal(columns, "schedule", *words, "--database-url", self.url)


@pytest.fixture
async def office(app: Mainspring, url: str) -> Office:
    """With a job that the database knows, and no schedule yet."""
    office = Office(app, url)
    await office.report.submit("")
    return office


DAILY = ("create", "daily", "--job", "report", "--when", "0 9 * * *")


# ── create ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_schedule_is_made_and_says_what_it_means(office: Office) -> None:
    new_year = ("--when", "0 9 1 1 *", "--zone", "Europe/Berlin")
    shown = office.says("create", "yearly", "--job", "report", *new_year, "--arg", "day=Mon").splitlines()

    assert shown[:4] == [
        "schedule  yearly (version 1)",
        "job       report",
        "when      0 9 1 1 * zone=Europe/Berlin",
        "in words  Every year on 1 January at 09:00, Europe/Berlin time.",
    ]
    assert [" 1 Jan " in line and " 09:00 CET, in " in line for line in shown[4:]] == [True] * 5
    made = await office.app.schedules.find("yearly")
    assert (made.job, made.payload, made.zone) == ("report", {"day": "Mon"}, "Europe/Berlin")


async def test_all_that_can_be_said_about_a_schedule_is_kept(office: Office) -> None:
    document = office.run(
        *DAILY,
        *("--payload", '{"day": "Tue"}', "--spread", "10m", "--max-runs", "3"),
        *("--starts-at", "2031-01-01T00:00Z", "--ends-at", "2032-01-01T00:00Z"),
        *("--catch-up", "all", "--catch-up-window", "2d", "--priority", "0", "--tag", HOSTILE, "--tag", "b"),
        *("--attempt-timeout", "5m", "--retry", "max_attempts=2"),
    )

    assert [each["nominal_at"] for each in document["next"]] == [f"2031-01-0{n}T09:00:00Z" for n in (1, 2, 3)]
    assert document["next"][0]["due_at"] > document["next"][0]["nominal_at"]
    assert (document["payload"], document["tags"]) == ({"day": "Tue"}, [HOSTILE, "b"])
    assert (document["catch_up"], document["catch_up_window"]) == ("all", "P2D")
    assert document["options"]["priority"] == 0
    assert document["options"]["overrides"]["retry"]["max_attempts"] == 2
    assert document["options"]["overrides"]["timeout"] == "PT300S"


async def test_how_runs_are_delivered_and_may_overlap_can_be_said(office: Office) -> None:
    made = office.run(*DAILY, "--delivery", "at_most_once", "--overlap", "skip", "--pause-after-failures", "3")
    assert made["options"] == {"delivery": "at_most_once"}
    assert (made["overlap"], made["pause_after_failures"]) == ("skip", 3)

    changed = office.run("update", "daily", "--overlap", "buffer_all")
    assert (changed["overlap"], changed["pause_after_failures"]) == ("buffer_all", 3)
    refused = office.refused("update", "daily", "--pause-after-failures", "0")
    assert refused["code"] == "invalid-pause-after-failures"
    shown = office.says("show", "daily")
    assert "buffer_all: each waits until the earlier ones have ended" in shown
    assert "after 3 runs in a row without success" in shown


async def test_who_gives_no_application_is_told_when_arguments_are_checked(office: Office) -> None:
    asked = ("create", "daily", "--job", "report", "--when", "0 9 * * *", "--arg", "month=1", "--replace")

    assert "arguments are checked when a run of it starts; give --app to check them now" in office.answer(*asked).err
    assert "are checked" not in office.answer(*asked, "--app", "tests.system.unfit_app:app").err
    assert "are checked" in office.answer("update", "daily", "--arg", "month=2").err
    assert "are checked" not in office.answer("update", "daily", "--priority", "2").err


async def test_what_is_there_is_replaced_only_if_that_is_meant(office: Office) -> None:
    later = ("create", "daily", "--job", "report", "--when", "0 10 * * *")
    office.run(*DAILY)

    assert office.refused(*DAILY)["code"] == "schedule-exists"
    assert office.run(*DAILY, "--replace")["version"] == 1  # it is the same
    assert office.refused(*later, "--replace", "--expected-version", "2")["code"] == "schedule-version-conflict"
    assert office.run(*later, "--replace", "--expected-version", "1")["version"] == 2


async def test_what_counts_from_now_is_not_put_off_by_saying_it_again(office: Office) -> None:
    steps = ("create", "steps", "--job", "report", "--when", "every 1 hour 30 minutes", "--arg", "day=Mon", "--replace")
    first = office.run(*steps)

    again = office.run(*steps)

    assert (again["version"], again["when"], again["next"]) == (1, first["when"], first["next"])


async def test_a_dry_run_changes_nothing_and_refuses_what_would_be_refused(office: Office) -> None:
    document = office.run(*DAILY, "--dry-run")
    assert (document["is_dry_run"], document["words"], len(document["next"])) == (True, "Every day at 09:00, UTC.", 5)
    assert office.run("list") == {"schedules": []}

    office.run(*DAILY)
    over = ("create", "once", "--job", "report", "--when", "2020-01-01T00:00Z")
    for words, code in (
        (DAILY, "schedule-exists"),
        ((*DAILY, "--replace", "--expected-version", "7"), "schedule-version-conflict"),
        (("create", "new", "--job", "repotr", "--when", "1h"), "job-not-found"),
        (("create", "no/name\n", "--job", "report", "--when", "1h"), "invalid-name"),
        (over, "schedule-over"),
    ):
        assert office.refused(*words, "--dry-run")["code"] == code


async def test_arguments_are_checked_where_the_application_is_at_hand(office: Office) -> None:
    hello = ("--app", "examples.hello:app", "--when", "0 9 * * *")

    assert office.refused("create", "a", "--job", "greet", *hello, "--arg", "nome=Ada")["code"] == "invalid-arguments"
    assert office.refused("create", "a", "--job", "report", *hello)["code"] == "job-not-found"
    assert office.run("create", "a", "--job", "greet", *hello, "--arg", "name=Ada")["payload"] == {"name": "Ada"}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--when", "every day at 9"], "invalid-english"),
        (["--when", "0 9 * *"], "invalid-cron"),
        (["--when", "1h", "--zone", "Europe/Berln"], "unknown-zone"),
        (["--when", "1h", "--spread", "ten"], "invalid-spread"),
        (["--when", "1h", "--starts-at", "2031-01-01"], "invalid-starts-at"),
        (["--when", "1h", "--max-runs", "3"], "max-runs-needs-start"),
        (["--when", "1h", "--catch-up-window", "0s"], "invalid-catch-up"),
        (["--when", "1h", "--catch-up-window", "soon"], "invalid-catch-up-window"),
        (["--when", "1h", "--priority", "10"], "invalid-priority"),
        (["--when", "1h", "--expected-version", "1"], "expected-version-of-new"),
        (["--when", "1h", "--payload", "[1]"], "invalid-payload"),
        (["--when", "1h not=off", "--calendar", "off"], "invalid-calendar"),
    ],
)
def test_what_cannot_be_made_is_refused_before_a_database_is_asked(words: list[str], code: str) -> None:
    answer = refused("schedule", "create", "a", "--job", "report", *words, "--database-url", NOWHERE)
    assert answer["code"] == code


# ── update ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_some_of_a_schedule_is_changed_and_the_rest_stays(office: Office) -> None:
    office.run(*DAILY, "--tag", "a", "--spread", "10m", "--catch-up", "all", "--catch-up-window", "2d")

    shown = office.says("update", "daily", "--when", "0 10 * * *", "--arg", "day=Tue").splitlines()
    assert shown[:3] == ["schedule  daily (version 2)", "job       report", "when      0 10 * * * spread=PT10M"]
    changed = office.run("update", "daily", "--priority", "1", "--tag", "b", "--catch-up", "none")
    assert (changed["version"], changed["when"], changed["payload"]) == (3, "0 10 * * * spread=PT10M", {"day": "Tue"})
    assert (changed["options"], changed["tags"], changed["catch_up"]) == ({"priority": 1}, ["b"], "none")
    assert changed["catch_up_window"] == "P2D"
    assert office.run("update", "daily", "--tag", "b")["version"] == 3


async def test_an_update_without_sense_is_refused(office: Office) -> None:
    office.run(*DAILY)

    assert office.refused("update", "daily")["code"] == "nothing-to-change"
    assert office.refused("update", "daily", "--catch-up-window", "2d")["code"] == "catch-up-missing"
    assert office.refused("update", "dialy", "--tag", "a")["code"] == "schedule-not-found"
    words = ("update", "daily", "--tag", "a", "--expected-version", "2")
    assert office.refused(*words)["code"] == "schedule-version-conflict"


# ── acts ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_schedule_is_paused_and_resumed(office: Office) -> None:
    office.run(*DAILY)

    assert office.says("pause", "daily", "--reason", HOSTILE) == "paused\n"
    shown = office.says("show", "daily")
    assert "state      paused by " in shown
    assert "\\x1b[31mred" in shown
    assert "next       none, as it is" in shown
    assert office.run("list", "--state", "paused")["schedules"][0]["pause_reason"] == HOSTILE
    assert office.says("resume", "daily").startswith("resumed; next: ")
    assert office.says("resume", "daily").startswith("it was not paused; next: ")


async def test_a_pause_may_have_an_end(office: Office) -> None:
    office.run(*DAILY)

    paused = office.run("pause", "daily", "--until", "2h")
    span = datetime.fromisoformat(paused["paused_until"]) - datetime.fromisoformat(paused["paused_at"])
    assert timedelta(0) < span <= timedelta(hours=2)
    assert office.run("show", "daily")["next"]
    assert "paused until Wed  1 Jan 2031 12:00 UTC" in office.says("pause", "daily", "--until", "2031-01-01T12:00Z")
    assert office.refused("pause", "daily", "--until", "2020-01-01T12:00Z")["code"] == "invalid-until"
    assert office.refused("pause", "daily", "--until", "tomorrow")["code"] == "invalid-until"


async def test_a_triggered_run_is_one_of_the_schedule(office: Office) -> None:
    office.run(*DAILY, "--arg", "day=Mon", "--tag", "a")
    run_id = office.says("trigger", "daily").strip()

    run = await office.app.runs.find(run_id)
    assert (run.job, run.payload, run.tags, run.headers["schedule"]) == ("report", {"day": "Mon"}, ["a"], "daily")
    assert office.run("trigger", "daily")["id"] != run_id


async def test_a_schedule_is_deleted_if_somebody_says_yes(office: Office) -> None:
    office.run(*DAILY)

    assert office.refused("delete", "daily")["code"] == "not-confirmed"
    assert office.refused("delete", "daily", "--yes", "--expected-version", "2")["code"] == "schedule-version-conflict"
    assert "Nothing was done." in _answering("n", office.url)
    assert office.run("show", "daily")["schedule"]["version"] == 1
    assert "deleted" in _answering("y", office.url)
    missing = office.refused("delete", "daily", "--yes")
    assert missing["code"] == "schedule-not-found"


def _answering(word: str, url: str) -> str:
    """What `schedule delete daily` prints to somebody who answers its question with this word."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "mainspring.cli", "schedule", "delete", "daily", "--database-url", url]
    process = subprocess.Popen(command, cwd=ROOT, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    os.write(ours, f"{word}\n".encode())
    printed, _ = process.communicate(timeout=60)
    said = os.read(ours, 65_536).decode()
    os.close(ours)
    assert "Delete schedule daily (0 9 * * *)? [y/N]" in said
    return said + printed


async def test_versions_are_listed_and_an_older_one_put_in_force_again(office: Office) -> None:
    office.run(*DAILY, "--arg", "day=Mon")
    office.run("create", "daily", "--job", "report", "--when", "0 10 * * *", "--arg", "day=Mon", "--replace")
    assert "when      0 9 * * *" in office.says("rollback", "daily", "--to", "1")

    versions = office.run("versions", "daily")["versions"]
    assert [(each["version"], each["when"]) for each in versions] == [
        (3, "0 9 * * *"),
        (2, "0 10 * * *"),
        (1, "0 9 * * *"),
    ]
    heading, *lines = office.says("versions", "daily").splitlines()
    assert heading.split() == ["version", "since", "by", "changed", "when", "job"]
    assert [("when" in line, "new" in line) for line in lines] == [(True, False), (True, False), (False, True)]
    assert office.refused("rollback", "daily", "--to", "9")["code"] == "schedule-version-not-found"


@pytest.mark.parametrize("act", ["show", "history", "versions", "pause", "resume", "trigger"])
async def test_a_schedule_that_is_not_there_is_an_error_with_a_suggestion(office: Office, act: str) -> None:
    office.run(*DAILY)

    error = office.refused(act, "dialy")
    assert (error["code"], error["hint"]) == ("schedule-not-found", "Did you mean 'daily'?")


# ── lists ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_schedules_are_listed_by_name_and_chosen_by_options(office: Office) -> None:
    for name, tags in (("a-1", ["x"]), ("a-2", ["x", HOSTILE]), ("b-1", [])):
        await office.report.options(tags=tags).scheduled(name, "0 9 * * *").create()
    await office.app.schedules.pause("b-1")

    def names(*words: str) -> list[str]:
        return [each["name"] for each in office.run("list", *words)["schedules"]]

    assert names() == ["a-1", "a-2", "b-1"]
    assert names("--prefix", "a") == ["a-1", "a-2"]
    assert names("--state", "paused", "--state", "done") == ["b-1"]
    assert names("--tag", "x", "--tag", HOSTILE) == ["a-2"]
    assert names("--after", "a-1", "--limit", "1") == ["a-2"]
    assert sorted(names("--due-before", "1d")) == ["a-1", "a-2"]
    assert names("--due-before", "1ms") == []
    assert names("--job", "report", "--prefix", "c") == []
    assert office.refused("list", "--job", "repotr")["code"] == "job-not-found"
    assert office.says("list", "--prefix", "c") == "No schedules match.\n"
    assert office.says("list").splitlines()[0].split() == [
        "schedule",
        "state",
        "next",
        "job",
        "when",
        "version",
        "tags",
    ]


async def test_what_no_scheduler_decides_is_told(office: Office, connection: Connection) -> None:
    office.run(*DAILY)
    await connection.execute("update cursor set due_at = now() - interval '3 hours'")

    assert "3 h late" in office.says("list")
    assert "Due 3 h ago, and not decided yet: is a scheduler running?" in office.says("history", "daily", "--missed")
    assert office.run("history", "daily")["overdue_since"] is not None


# ── what happened ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def morning(url: str, connection: Connection) -> AsyncIterator[Office]:
    """After a night in which an hourly schedule fired, was paused, was missed, and fired again."""
    clock = FrozenClock(EVENING)
    app = Mainspring(url, clock=clock, submitted_by="tester")
    await clock.freeze(app)
    office, firing = Office(app, url), Firing(connection, clock)

    async def let_pass(**span: float) -> None:
        await clock.advance(timedelta(**span))
        await firing.fire()

    await office.report.scheduled("hourly", "0 * * * *", zone="Europe/Berlin").create("Mon")
    await let_pass(minutes=30)  # 21:00 in Berlin
    await let_pass(minutes=30)
    await app.schedules.pause("hourly", reason=HOSTILE)
    await let_pass(hours=2)
    await app.schedules.resume("hourly")  # 22:00 and 23:00 are skipped
    await let_pass(hours=3, minutes=15)  # 00:00 and 01:00 are collapsed into 02:00, and that is late
    await let_pass(minutes=15, seconds=0.012)
    await let_pass(minutes=30)  # 03:00, on time
    yield office
    await app.close()


async def test_history_says_what_became_of_each_instant(morning: Office) -> None:
    records = morning.run("history", "hourly")["occurrences"]
    lines = morning.says("history", "hourly").splitlines()
    run_ids = [each["run_id"] for each in records]

    assert [each["outcome"] for each in records] == ["fired", "fired", "collapsed", "skipped", "fired"]
    assert [" ".join(line.split()) for line in lines] == [
        "Europe/Berlin became run state",
        f"Tue 7 Jan 2031 03:00 CET fired, late by 12 ms {run_ids[0]} ready",
        f"Tue 7 Jan 2031 02:00 CET fired, late by 45 min {run_ids[1]} ready",
        f"Tue 7 Jan 2031 00:00 – 01:00 CET collapsed into {run_ids[1]} ready",
        "Mon 6 Jan 2031 22:00 – 23:00 CET skipped: the schedule was paused",
        f"Mon 6 Jan 2031 21:00 CET fired {run_ids[4]} ready",
    ]


async def test_what_was_missed_last_night_is_one_question(morning: Office) -> None:
    records = morning.run("history", "hourly", "--missed")["occurrences"]
    assert [(each["outcome"], each["reason"]) for each in records] == [
        ("fired", None),
        ("collapsed", "collapsed"),
        ("skipped", "paused"),
    ]
    recent = ("history", "hourly", "--missed", "--since", "2031-01-07T01:30Z")
    assert morning.says(*recent) == "Nothing was missed.\n"
    assert len(morning.run("history", "hourly", "--before", "2031-01-06T23:00Z", "--limit", "1")["occurrences"]) == 1
    assert morning.refused("history", "hourly", "--since", "yesterday")["code"] == "invalid-since"


async def test_a_schedule_is_shown_with_what_it_did(morning: Office) -> None:
    document = morning.run("show", "hourly", "--occurrences", "2")
    shown = morning.says("show", "hourly")

    assert [each["run_state"] for each in document["occurrences"]] == ["ready", "ready"]
    assert [each["local"] for each in document["next"]] == [f"2031-01-07T0{n}:00:00+01:00" for n in range(4, 9)]
    for line in (
        "when       0 * * * * zone=Europe/Berlin",
        "in words   Every hour, on the hour, Europe/Berlin time.",
        "catch-up   latest, of what was missed in the last 1 d",
        'arguments  {"day":"Mon"}',
        "version    1, since 2031-01-06 19:30:00.000 UTC by tester",
    ):
        assert line in shown.splitlines()


@pytest.mark.parametrize("columns", [40, 80, 120])
async def test_on_a_terminal_each_line_fits_and_run_ids_are_whole(morning: Office, columns: int) -> None:
    run_ids = {each["run_id"] for each in morning.run("history", "hourly")["occurrences"]} - {None}
    name = "a-schedule-with-a-rather-long-name-for-customer-42"
    await morning.report.options(tags=[HOSTILE]).scheduled(name, "*/15 8-17 * * MON-FRI").create()

    for words in (("history", "hourly"), ("show", "hourly"), ("list",), ("versions", "hourly"), ("show", name)):
        lines = morning.on_a_terminal(columns, *words)
        assert all(len(line) <= columns for line in lines), lines
        if "hourly" in words and "versions" not in words:
            assert all(any(run_id in line for line in lines) for run_id in run_ids)
            assert any("the schedule was paused" in line for line in lines)
            assert any("late by 45 min" in line for line in lines)


@pytest.mark.parametrize("columns", [40, 80, 120])
async def test_on_a_terminal_neither_names_nor_times_are_cut(morning: Office, columns: int) -> None:
    name = "a-schedule-with-a-rather-long-name-for-customer-42"
    await (
        morning.report.options(tags=["monthly"]).scheduled(name, "30 */15 8-17 * * MON-FRI", zone="Asia/Tokyo").create()
    )
    await morning.report.scheduled("once", "2031-02-03T04:05:06Z, 2031-02-04T04:05:06Z").create()
    await morning.app.runs.cancel(morning.run("history", "hourly")["occurrences"][0]["run_id"])

    for words in (
        ("list",),
        ("versions", "once"),
        ("history", "hourly"),
        ("forecast", "--zone", "America/Argentina/Buenos_Aires"),
        (*NIGHT, "--which", "all", "--dry-run"),
    ):
        lines = morning.on_a_terminal(columns, *words)
        assert all(len(line) <= columns for line in lines), lines
        assert "…" not in "".join(lines), lines
    listed = "".join(line.strip() for line in morning.on_a_terminal(columns, "list"))
    assert name in listed
    assert "2031-02-04T04:05:06Z" in listed


# ── arguments that the code no longer takes ─────────────────────────────────────────────────────────────────────


async def test_doctor_and_apply_name_schedules_whose_arguments_no_longer_fit(office: Office) -> None:
    await office.report.scheduled("old", "0 9 * * *").create("Mon")
    new = ("--app", "tests.system.unfit_app:app", "--database-url", office.url, "-o", "json")
    findings = mainspring("doctor", *new).document["findings"]
    applied = mainspring("schedule", "apply", *new).document
    said = mainspring("schedule", "apply", *new[:-2]).err

    finding = next(each for each in findings if each["check"] == "arguments")
    assert finding["level"] == "problem"
    assert finding["says"].startswith("those of 1 schedule do not fit the code: old (")
    assert "'day'" in finding["says"]
    assert [(each["name"], each["job"]) for each in applied["unfit"]] == [("old", "report")]
    assert "schedule old: its arguments no longer fit report: " in said
    await office.app.schedules.delete("old")
    assert mainspring("schedule", "apply", *new).document["unfit"] == []
    well = next(each for each in mainspring("doctor", *new).document["findings"] if each["check"] == "arguments")
    assert (well["level"], well["says"]) == ("ok", "those of all schedules fit the code")


# ── backfill ────────────────────────────────────────────────────────────────────────────────────────────────────

NIGHT = ("backfill", "hourly", "--since", "2031-01-06T20:30Z")


async def test_a_backfill_is_listed_first_and_then_worked_off(morning: Office) -> None:
    lines = morning.says(*NIGHT, "--dry-run").splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "Europe/Berlin version becomes state",
        "Mon 6 Jan 2031 22:00 CET 1 a run",
        "Mon 6 Jan 2031 23:00 CET 1 a run",
        "Tue 7 Jan 2031 00:00 CET 1 a run",
        "Tue 7 Jan 2031 01:00 CET 1 a run",
    ]
    assert morning.refused(*NIGHT)["code"] == "not-confirmed"
    assert len(morning.run("history", "hourly")["occurrences"]) == 5

    answer = morning.answer(*NIGHT, "--yes", "--order", "backwards", "--priority", "9", "--reason", "the outage")
    assert answer.out == "4 backfilled\n"
    assert "mainspring operation resume " in answer.err
    outcomes = [each["outcome"] for each in morning.run("history", "hourly")["occurrences"]]
    assert outcomes == ["fired"] * 7
    assert morning.says(*NIGHT, "--yes") == "There is nothing to backfill.\n"
    (listed,) = mainspring("operation", "list", "--database-url", morning.url, "-o", "json").document["operations"]
    assert (listed["kind"], listed["done"], listed["reason"]) == ("backfill", 4, "the outage")
    assert '"schedule":"hourly"' in mainspring("operation", "list", "--database-url", morning.url).out


async def test_of_a_long_backfill_both_ends_are_listed(morning: Office) -> None:
    long = ("backfill", "hourly", "--since", "2029-08-01T00:00Z", "--dry-run")
    lines = [" ".join(line.split()) for line in morning.says(*long).splitlines()]
    assert (len(lines), lines[1], lines[-1]) == (
        12,
        "Wed 1 Aug 2029 02:00 CEST 1 a run",
        "Tue 7 Jan 2031 01:00 CET 1 a run",
    )
    told = morning.run(*long)
    assert (len(told["occurrences"]), lines[6]) == (10, f"… {told['count'] - 10:,} more …")
    assert told["count"] > 10_000


async def test_what_failed_is_listed_with_its_run(morning: Office) -> None:
    record = morning.run("history", "hourly")["occurrences"][0]
    await morning.app.runs.cancel(record["run_id"])
    (line,) = morning.says(*NIGHT, "--which", "failed", "--dry-run").splitlines()[1:]
    assert " ".join(line.split()) == f"Tue 7 Jan 2031 03:00 CET 1 rerun of {record['run_id']} cancelled"
    assert morning.run(*NIGHT, "--which", "failed", "--yes")["done"] == 1

    rerun = morning.run("history", "hourly")["occurrences"][0]
    assert (rerun["first_run_id"], rerun["run_state"]) == (record["run_id"], "ready")
    line = morning.says("history", "hourly", "--limit", "1").splitlines()[1]
    assert " ".join(line.split()) == (
        f"Tue 7 Jan 2031 03:00 CET fired, late by 12 ms, rerun as {rerun['run_id']} ready"
    )
    for columns in (40, 80, 120):
        lines = morning.on_a_terminal(columns, "history", "hourly")
        assert any("rerun as" in line for line in lines)
        assert any(rerun["run_id"] in line for line in lines)


async def test_a_backfill_that_makes_no_sense_is_refused(morning: Office) -> None:
    for words, code in (
        (("--since", "2031-01-08T00:00Z"), "backfill-of-the-future"),
        (("--since", "1990-01-01T00:00Z"), "backfill-too-long"),
        (("--since", "soon"), "invalid-since"),
        (("--since", "2031-01-06T00:00Z", "--rate", "0"), "invalid-rate"),
        (("--since", "2031-01-06T00:00Z", "--concurrency", "0"), "invalid-concurrency"),
    ):
        assert morning.refused("backfill", "hourly", *words, "--yes")["code"] == code, words
    assert morning.refused("backfill", "hurly", "--since", "1h")["code"] == "schedule-not-found"

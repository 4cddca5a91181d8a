"""`mainspring schedule …`, as programs and people meet it. None of it needs a database."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import icalendar
import pytest
from tests.waiting import PATIENCE

from .test_cli import HOSTILE, mainspring, refused

if TYPE_CHECKING:
    from pathlib import Path

    from .command_server import Answer

HOLIDAYS = """\
BEGIN:VCALENDAR
VERSION:2.0
PRODID:test
BEGIN:VEVENT
UID:1
DTSTART;VALUE=DATE:20261225
RRULE:FREQ=YEARLY
SUMMARY:Christmas
END:VEVENT
BEGIN:VEVENT
UID:2
DTSTART:20261201T140000Z
SUMMARY:a \x1b[31mmeeting
END:VEVENT
END:VCALENDAR
"""


def schedule(*words: str, environment: dict[str, str] | None = None) -> Answer:
    answer = mainspring("schedule", *words, environment=environment)
    assert answer.code == 0, answer.err
    return answer


@pytest.fixture
def holidays(tmp_path: Path) -> str:
    (tmp_path / "holidays.ics").write_text(HOLIDAYS)
    return f"off={tmp_path / 'holidays.ics'}"


# ── explain ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_schedule_is_explained_without_a_database() -> None:
    nowhere = {"MAINSPRING_DATABASE_URL": "postgresql://127.0.0.1:1/nowhere"}
    words = ["explain", "last", "friday", "of", "the", "month", "at", "18:00", "--zone", "Europe/Berlin"]

    assert schedule(*words, "--from", "2026-11-16", environment=nowhere).out == (
        "schedule  0 18 * * 5L zone=Europe/Berlin\n"
        "in words  On the last Friday of every month at 18:00, Europe/Berlin time.\n"
        "next      Fri 27 Nov 2026 18:00 CET, in 11 d 18 h\n"
        "          2026-11-27 17:00Z\n"
    )


def test_an_explanation_for_programs() -> None:
    document = schedule("explain", "*/15 8-17 * * MON-FRI", "--from", "2026-11-16T03:00Z", "-o", "json").document

    assert document["text"] == "*/15 8-17 * * 1-5"
    assert document["words"] == "Every 15 minutes from 08:00 through 17:45, every weekday, UTC."
    assert document["schedule"] == {"when": "*/15 8-17 * * 1-5"}
    assert document["next_at"] == "2026-11-16T08:00:00Z"
    assert document["tzdata"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["explain", "every tuseday at noon"], "invalid-english"),
        (["explain", "61 * * * *"], "invalid-cron"),
        (["explain", "0 0 30 2 *"], "never-fires"),
        (["explain", "0 9 * * *", "--zone", "Europe/Berln"], "unknown-zone"),
        (["explain", "0 9 * * *", "--from", "yesterday"], "invalid-from"),
        (["explain", "0 9 * * * not=off"], "unknown-calendar"),
        (["explain", "0 9 * * * not=off", "--calendar", "off"], "invalid-calendar"),
        (["explain", "0 9 * * * not=off", "--calendar", "off=/nowhere.ics"], "file-not-readable"),
        (["explain", "0 9 * * * not=off", "--calendar", "off=pyproject.toml"], "invalid-icalendar"),
        (["preview", "0 9 * * *", "--count", "0"], "invalid-count"),
        (["preview", "0 9 * * *", "--year", "3000"], "invalid-year"),
        (["diff", "0 9 * * *", "0 9 * * *", "--within", "soon"], "invalid-within"),
        (["load", "/nowhere"], "file-not-readable"),
        (["load", "README.md", "--within", "900d"], "invalid-range"),
    ],
)
def test_what_is_refused_has_a_code(words: list[str], code: str) -> None:
    assert refused("schedule", *words)["code"] == code


def test_an_error_points_at_the_character() -> None:
    answer = mainspring("schedule", "explain", "every", "tuseday", "at", "noon")

    assert answer.code == 1
    message, shown, caret, hint = answer.err.splitlines()
    assert message.endswith("[invalid-english]")
    assert (shown, caret) == ("  every tuseday at noon", "        ^")
    assert hint.startswith("hint: Write 'every tuesday at noon'.")


@pytest.mark.parametrize("fields", ["0 9 * * 1-5", "* * * * *"])
def test_a_star_that_the_shell_replaced_is_recognised(fields: str, tmp_path: Path) -> None:
    names = ("notes.txt", "orders.csv")
    for name in names:
        (tmp_path / name).touch()
    words = [word for field in fields.split() for word in (names if field == "*" else (field,))]

    answer = mainspring("schedule", "explain", *words, cwd=tmp_path)
    assert answer.code == 1
    assert "hint: Put the schedule in quotes: the shell replaced * by file names.\n" in answer.err


def test_what_was_typed_cannot_steer_the_terminal() -> None:
    for words in (["explain", HOSTILE], ["diff", HOSTILE, "0 9 * * *"]):
        assert not set("\x1b\x07\x9b\u202e") & set(mainspring("schedule", *words).err)


def test_only_a_preview_is_written_as_icalendar() -> None:
    answer = mainspring("schedule", "explain", "0 9 * * *", "-o", "ics")

    assert answer.code == 1
    assert "[invalid-output]" in answer.err


# ── preview ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_preview_has_local_times_utc_and_notes() -> None:
    words = ["preview", "30 2 * * *", "--zone", "Europe/Berlin", "--from", "2026-03-28", "--count", "2"]

    assert schedule(*words).out.splitlines()[:6] == [
        "30 2 * * * zone=Europe/Berlin",
        "Every day at 02:30, Europe/Berlin time.",
        "",
        "Europe/Berlin               UTC                        in",
        "Sat 28 Mar 2026 02:30 CET   2026-03-28 01:30Z  2 h 30 min",
        "Sun 29 Mar 2026 03:00 CEST  2026-03-29 01:00Z     1 d 2 h  02:30 does not exist on 29 March; runs at 03:00",
    ]


def test_a_preview_for_programs_and_for_calendars(holidays: str) -> None:
    words = ["preview", "0 9 * * 1-5 not=off", "--calendar", holidays, "--from", "2026-12-24", "--count", "2"]

    document = schedule(*words, "-o", "json").document
    assert [(each["fires"], each["nominal_at"]) for each in document["occurrences"]] == [
        (True, "2026-12-24T09:00:00Z"),
        (False, "2026-12-25T09:00:00Z"),
        (True, "2026-12-28T09:00:00Z"),
    ]
    assert document["occurrences"][1]["notes"] == ["dropped: within the calendar off"]
    events = icalendar.Calendar.from_ical(schedule(*words, "-o", "ics").out).walk("VEVENT")
    assert len(events) == 2


def test_what_of_a_calendar_was_left_out_is_said(holidays: str) -> None:
    answer = schedule("explain", "0 9 * * * not=off", "--calendar", holidays)

    assert "left out a \\x1b[31mmeeting: it is not about whole days" in answer.err
    assert "never within the calendar off" in answer.out


def test_calendars_may_be_json(tmp_path: Path) -> None:
    (tmp_path / "off.json").write_text(json.dumps({"yearly": ["12-25"], "weekdays": [5, 6]}))
    words = ["preview", "0 9 * * * not=off", "--calendar", f"off={tmp_path / 'off.json'}", "--from", "2026-12-25"]

    occurrences = schedule(*words, "--count", "1", "-o", "json").document["occurrences"]
    assert [each["nominal_at"] for each in occurrences if each["fires"]] == ["2026-12-28T09:00:00Z"]


def test_a_year_at_a_glance() -> None:
    words = ["preview", "0 9 * * 1-5", "--year", "2026"]

    lines = schedule(*words).out.splitlines()
    assert "2026: 261 occurrences on 261 days" in lines
    assert "    · none   █ 1 a day" in lines
    assert "busiest day     Thu  1 Jan 2026, 1 occurrence" in lines
    document = schedule(*words, "-o", "json").document
    assert (document["total"], document["days"]["2026-11-16"], document["most_in_a_minute"]) == (261, 1, 1)


def in_terminal(columns: int, *words: str, **environment: str) -> list[str]:
    """The lines a command prints on a terminal of that width, without what makes them bold or dim."""
    script = (
        "import os, pty, sys, termios, fcntl, struct\n"
        "pid, fd = pty.fork()\n"
        "if pid == 0:\n"
        "    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 50, int(sys.argv[1]), 0, 0))\n"
        "    os.execv(sys.executable, [sys.executable, '-m', 'mainspring.cli', *sys.argv[2:]])\n"
        "out = b''\n"
        "try:\n"
        "    while piece := os.read(fd, 65536): out += piece\n"
        "except OSError: pass\n"
        "sys.stdout.buffer.write(out)\n"
    )
    command = [sys.executable, "-c", script, str(columns), *words]
    source = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    variables = {"PATH": "/usr/bin:/bin", "TERM": "xterm", **source, **environment}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).splitlines()


WIDTHS = [40, 50, 60, 80, 120]


def words_of(lines: list[str]) -> str:
    """What was printed, however it was wrapped."""
    return " ".join(" ".join(lines).split())


def assert_fits(lines: list[str], columns: int) -> None:
    assert max(map(len, lines)) <= columns
    assert "…" not in "".join(lines), "a value was cut"


@pytest.mark.parametrize(("columns", "term"), [*((columns, "xterm") for columns in WIDTHS), (40, "dumb")])
def test_a_preview_fits_the_terminal_and_needs_no_colour(columns: int, term: str) -> None:
    words = ["schedule", "preview", "30 2 * * *", "--zone", "Europe/Berlin", "--from", "2026-03-28", "--count", "2"]

    lines = in_terminal(columns, *words, NO_COLOR="1", TERM=term)
    assert_fits(lines, columns)
    assert "Sat 28 Mar 2026 02:30 CET" in words_of(lines)
    assert "02:30 does not exist on 29 March; runs at 03:00" in words_of(lines)
    assert ("2026-03-28 01:30Z" in words_of(lines)) == (columns >= 50)
    assert ("2 h 30 min" in words_of(lines)) == (columns >= 60)


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_year_fits_the_terminal(columns: int) -> None:
    lines = in_terminal(columns, "schedule", "preview", "*/15 8-17 * * 1-5", "--year", "2026", NO_COLOR="1")

    assert_fits(lines, columns)
    days = [line for line in lines if line[:4] in ("Mon ", "Sat ")]
    assert sum(line[4:].count("█") for line in days) == 52, "every Monday of the year"
    assert sum(line[4:].count("·") for line in days) == 52, "and every Saturday"
    assert "Jan Feb Mar Apr May Jun Jul" in words_of(lines) or columns < 60


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_comparison_fits_the_terminal(columns: int) -> None:
    new = "30 9 * * 1-4 zone=America/New_York"
    words = ["schedule", "diff", "0 9 * * 1-5", new, "--zone", "Europe/Berlin", "--from", "2026-11-16"]

    lines = in_terminal(columns, *words, "--within", "1d", NO_COLOR="1")
    assert_fits(lines, columns)
    between = " " if columns >= 60 else " → "
    assert f"moved Mon 16 Nov 2026 09:00 CET{between}Mon 16 Nov 2026 09:30 EST" in words_of(lines)


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_load_and_an_explanation_fit_the_terminal(columns: int, tmp_path: Path) -> None:
    (tmp_path / "herd.txt").write_text('0 * * * *\n{"schedule": "0 9 * * * spread=30m", "count": 600000}\n')
    words = ["schedule", "load", str(tmp_path / "herd.txt"), "--from", "2026-11-16T08:00", "--within", "2h"]

    lines = in_terminal(columns, *words, NO_COLOR="1")
    assert_fits([line for line in lines if "occurrences from" not in line], columns)
    assert any(line.startswith("16 Nov 09:00  200,001") and "20,001  ████" in line for line in lines)
    explained = in_terminal(columns, "schedule", "explain", "0 9 * * 1-5", "--from", "2026-03-28", NO_COLOR="1")
    assert_fits(explained, columns)
    assert "Mon 30 Mar 2026 09:00 UTC, in 2 d 9 h" in words_of(explained)


# ── diff ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_versions_are_compared() -> None:
    words = ["diff", "0 9 * * 1-5", "30 9 * * 1-4", "--from", "2026-11-16", "--within", "7d"]

    lines = schedule(*words, "--count", "5").out.splitlines()
    assert "moved     Mon 16 Nov 2026 09:00 UTC  Mon 16 Nov 2026 09:30 UTC" in lines
    assert "vanished  Fri 20 Nov 2026 09:00 UTC  –" in lines
    assert "Within 7 d: 4 moved, 1 vanished, 0 kept." in lines
    document: dict[str, Any] = schedule(*words, "-o", "json").document
    assert (len(document["moved"]), document["vanished"], document["kept"]) == (4, ["2026-11-20T09:00:00Z"], 0)


def test_equal_versions_have_no_difference() -> None:
    answer = schedule("diff", "0 9 * * 1-5", "every weekday at 09:00", "--from", "2026-11-16", "--within", "7d")

    assert "No difference within 7 d: 5 instants kept.\n" in answer.out


# ── load ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_load_of_files(tmp_path: Path) -> None:
    (tmp_path / "herd.txt").write_text("# hourly\n0 * * * *\n0 * * * *\n\nevery weekday at 09:00\n")
    (tmp_path / "herd.jsonl").write_text('{"schedule": "0 9 * * *", "count": 1000}\n')
    words = ["load", str(tmp_path / "herd.txt"), str(tmp_path / "herd.jsonl"), "--from", "2026-11-16"]

    document = schedule(*words, "-o", "json").document
    assert (document["schedules"], document["groups"], document["total"]) == (1003, 3, 48 + 1 + 1000)
    assert document["fullest"][0] == {"at": "2026-11-16T09:00:00Z", "count": 1003}
    lines = schedule(*words).out.splitlines()
    assert lines[0] == "1,003 schedules in 3 groups"
    assert "Mon 16 Nov 2026 09:00 UTC  1,003" in lines


def test_a_line_that_is_no_schedule_is_named(tmp_path: Path) -> None:
    (tmp_path / "herd.txt").write_text("0 * * * *\n0 99 * * *\n")
    error = refused("schedule", "load", str(tmp_path / "herd.txt"))
    assert (error["code"], error["fields"]["line"]) == ("invalid-cron", 2)

    (tmp_path / "herd.txt").write_text('{"schedule": 3}\n')
    assert refused("schedule", "load", str(tmp_path / "herd.txt"))["code"] == "invalid-line"

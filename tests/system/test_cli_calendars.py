"""`mainspring calendar`, as programs and people meet it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .test_cli import NOWHERE, mainspring, refused

if TYPE_CHECKING:
    from pathlib import Path

    from mainspring import Mainspring

    from .command_server import Answer

FILE = """BEGIN:VCALENDAR
BEGIN:VEVENT
SUMMARY:Christmas
DTSTART;VALUE=DATE:20261225
RRULE:FREQ=YEARLY
END:VEVENT
BEGIN:VEVENT
SUMMARY:Lunch
DTSTART:20261207T120000Z
DTEND:20261207T130000Z
END:VEVENT
END:VCALENDAR
"""


class Office:
    """An application with a job, and the command line on its database."""

    def __init__(self, app: Mainspring, url: str) -> None:
        self.app, self.url = app, url

        @app.job
        async def report() -> None: ...

        self.report = report

    def answer(self, *words: str) -> Answer:
        answer = mainspring(*words, "--database-url", self.url)
        assert answer.code == 0, answer
        return answer

    def says(self, *words: str) -> str:
        return self.answer(*words).out

    def run(self, *words: str) -> Any:
        return self.answer(*words, "-o", "json").document

    def refused(self, *words: str) -> dict[str, Any]:
        return refused(*words, "--database-url", self.url)


@pytest.fixture
async def office(app: Mainspring, url: str) -> Office:
    office = Office(app, url)
    await office.report.submit()
    return office


async def test_a_calendar_is_made_used_listed_and_deleted(office: Office) -> None:
    assert office.says("calendar", "list") == "No calendars.\n"
    shown = office.says(
        "calendar", "create", "holidays", "--yearly", "12-25", "--date", "2031-01-06", "--weekday", "Sun"
    )
    assert shown.splitlines()[:5] == [
        "calendar  holidays",
        "dates     2031-01-06",
        "weekdays  sun",
        "yearly    12-25",
        "used by   no schedule",
    ]
    daily = ("schedule", "create", "daily", "--job", "report", "--when", "0 9 * * * not=holidays")
    assert "the calendar holidays" in office.says(*daily)
    assert (
        office.says("calendar", "list").splitlines()[1].startswith("holidays  1 date, 1 weekday, 1 yearly day  daily")
    )
    assert office.run("calendar", "show", "holidays")["used_by"] == ["daily"]
    error = office.refused("calendar", "delete", "holidays", "--yes")
    assert (error["code"], error["fields"]["used_by"]) == ("calendar-in-use", ["daily"])
    office.says("schedule", "delete", "daily", "--yes")
    assert office.says("calendar", "delete", "holidays", "--yes") == "deleted\n"
    assert office.run("calendar", "list") == {"calendars": []}


async def test_what_is_there_is_replaced_only_if_that_is_meant(office: Office, tmp_path: Path) -> None:
    (tmp_path / "more.json").write_text('{"ranges": [["2031-08-01", "2031-08-14"]]}')
    create = ("calendar", "create", "off", "--window", "22:00-06:00")
    office.says(*create)
    assert office.refused(*create)["code"] == "calendar-exists"
    replaced = office.run(
        *create, "--replace", "--file", str(tmp_path / "more.json"), "--range", "2031-12-24..2032-01-01"
    )
    assert (replaced["version"], replaced["days"]) == (
        2,
        {
            "ranges": [["2031-08-01", "2031-08-14"], ["2031-12-24", "2032-01-01"]],
            "windows": [["22:00:00", "06:00:00"]],
        },
    )
    assert office.refused(*create, "--expected-version", "1")["code"] == "calendar-version-conflict"


async def test_a_file_is_imported_and_what_is_left_out_is_told(office: Office, tmp_path: Path) -> None:
    path = tmp_path / "de.ics"
    path.write_text(FILE)
    answer = office.answer("calendar", "import", "holidays", str(path))
    assert "yearly    12-25" in answer.out
    assert "de.ics: left out Lunch: it is not about whole days" in answer.err
    imported = office.run("calendar", "import", "holidays", str(path))
    assert (imported["events"], imported["calendar"]["version"]) == (2, 1)


async def test_a_dry_run_knows_the_calendars_that_are_stored(office: Office) -> None:
    daily = ("schedule", "create", "daily", "--job", "report", "--when", "0 9 * * * not=holidays", "--dry-run")
    assert office.refused(*daily)["code"] == "unknown-calendar"
    office.says("calendar", "create", "holidays", "--yearly", "12-25")
    assert office.run(*daily)["is_dry_run"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["create", "x", "--date", "24.12."], "invalid-calendar", "--date is '24.12.'; it must be a date"),
        (["create", "x", "--range", "2026-12-24"], "invalid-calendar", "two dates"),
        (["create", "x", "--yearly", "13-01"], "invalid-calendar", "month and day"),
        (["create", "x", "--weekday", "someday"], "invalid-calendar", "one of mon"),
        (["create", "x", "--window", "22"], "invalid-calendar", "two times of day"),
        (["create", "a b", "--yearly", "12-25"], "invalid-calendar", "letters, digits"),
        (["create", "x", "--file", "no such file"], "file-not-readable", "No such file"),
        (["import", "x", "no such file"], "file-not-readable", "No such file"),
    ],
)
def test_what_cannot_be_read_is_refused_before_a_database_is_asked(words: list[str], code: str, said: str) -> None:
    error = refused("calendar", *words, "--database-url", NOWHERE)
    assert error["code"] == code
    assert said in error["message"]

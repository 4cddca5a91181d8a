"""`mainspring schedule forecast`, and what `schedule create --dry-run` says about the load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .test_cli_schedules import Office, office

if TYPE_CHECKING:
    from typing import Any

__all__ = ["office"]  # a fixture


@pytest.fixture
async def busy(office: Office) -> Office:
    """Twenty schedules at noon, and one at every full hour."""
    for number in range(20):
        await office.report.scheduled(f"noon-{number:02}-of-a-customer-with-a-long-name", "0 12 * * *").create("")
    await office.report.scheduled("hourly", "0 * * * *").create("")
    return office


async def test_the_forecast_of_no_schedules_says_so(office: Office) -> None:
    shown = office.says("forecast").splitlines()

    assert shown[0] == "0 active schedules"
    assert shown[1].startswith("0 runs due from ")
    assert shown[-1].startswith("tzdata ")


async def test_the_forecast_of_one_schedule_says_one(office: Office) -> None:
    await office.report.scheduled("daily", "0 12 * * *").create("")
    shown = office.says("forecast").splitlines()

    assert shown[0] == "1 active schedule"
    assert shown[1].startswith("1 run due from ")


async def test_the_forecast_shows_a_chart_the_peaks_and_what_would_flatten_them(busy: Office) -> None:
    document = busy.run("forecast", "--peaks", "2")
    shown = busy.says("forecast", "--peaks", "2")

    assert (document["schedules"], document["total"], document["is_estimate"]) == (21, 44, False)
    assert [peak["count"] for peak in document["peaks"]] == [21, 1]
    assert [maker["when"] for maker in document["peaks"][0]["makers"]] == ["0 12 * * *", "0 * * * *"]
    assert sum(count for _, count in document["counts"]) == 44
    assert "21 active schedules\n44 runs due from " in shown
    assert "most in a minute" in shown
    assert "█" in shown
    assert "  20 of 0 12 * * * (noon-00-of-a-customer-with-a-long-name, …)\n    with spread=PT8H: 1" in shown
    assert "  1 of 0 * * * * (hourly)\n" in shown


@pytest.mark.parametrize("columns", [40, 80, 120])
async def test_a_forecast_fits_its_terminal(busy: Office, columns: int) -> None:
    shown = busy.on_a_terminal(columns, "forecast", "--zone", "Europe/Berlin")

    assert max(map(len, shown)) <= columns
    assert sum("█" in line for line in shown) >= 1
    assert any("with spread=PT8H" in line for line in shown)


async def test_a_dry_run_shows_what_the_schedule_would_add(busy: Office) -> None:
    create = ("create", "new", "--job", "report", "--when")
    document = busy.run(*create, "0 * * * *", "--dry-run")
    shown = busy.says(*create, "0 * * * *", "--dry-run").splitlines()

    busiest = document["busiest_second"]
    assert (busiest["before"], busiest["added"], busiest["at"][11:]) == (21, 1, "12:00:00Z")
    assert shown[-2] == "load      1 run on top of 21 in its busiest second of the next day,"
    assert shown[-1].endswith(" 12:00:00 UTC")
    assert busy.says(*create, "2099-01-01T00:00Z", "--dry-run").splitlines()[-1] == "load      none within a day"
    assert "busiest_second" not in busy.run(*create, "0 * * * *")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--within", "900d"], "invalid-hours"),
        (["--within", "soon"], "invalid-within"),
        (["--zone", "Mars/Olympus"], "unknown-zone"),
        (["--peaks", "0"], "invalid-peaks"),
    ],
)
async def test_what_cannot_be_forecast_is_refused(office: Office, words: list[str], code: str) -> None:
    error: dict[str, Any] = office.refused("forecast", *words)

    assert error["code"] == code

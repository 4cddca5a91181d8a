"""Which database is used when nobody names one, who is told of it, and how it is forbidden."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from mainspring import Mainspring, wiring
from mainspring.errors import DatabaseUnreachable, InvalidInput
from mainspring.wiring import DatabaseLocation, explain_once
from mainspring.wiring import location as places

if TYPE_CHECKING:
    from pathlib import Path

    from mainspring.wiring import Store

URL = "postgresql://ada:secret@db/shop"


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAINSPRING_DATABASE_URL", "MAINSPRING_DATA_DIR", "MAINSPRING_REQUIRE_SERVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(places, "_explained", set())


def explained(caplog: pytest.LogCaptureFixture, location: DatabaseLocation) -> list[tuple[int, str]]:
    caplog.clear()
    with caplog.at_level(logging.INFO, "mainspring"):
        explain_once(location)
    return [(record.levelno, record.getMessage()) for record in caplog.records]


def test_a_database_that_nobody_named_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    location = DatabaseLocation.chosen()

    ((level, words),) = explained(caplog, location)

    assert level == logging.WARNING
    assert words.startswith(
        f"Mainspring uses the embedded PostgreSQL in {location.data_directory}, because neither a URL"
    )
    assert "MAINSPRING_DATABASE_URL=postgresql://" in words
    assert not explained(caplog, DatabaseLocation.chosen())


def test_a_database_that_was_named_is_told_of_quietly(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = explained(caplog, DatabaseLocation.chosen(URL))
    directory = explained(caplog, DatabaseLocation.chosen(data_directory=tmp_path / "given"))
    monkeypatch.setenv("MAINSPRING_DATA_DIR", str(tmp_path))
    by_directory_variable = explained(caplog, DatabaseLocation.chosen())
    monkeypatch.setenv("MAINSPRING_DATABASE_URL", "postgresql+asyncpg://ada:secret@db2/shop")
    by_url_variable = explained(caplog, DatabaseLocation.chosen())

    sentences = [
        "Mainspring uses the server postgresql://ada:***@db/shop, because its URL was given.",
        f"Mainspring uses the embedded PostgreSQL in {tmp_path}/given, because its directory was given.",
        f"Mainspring uses the embedded PostgreSQL in {tmp_path}, because MAINSPRING_DATA_DIR names it.",
        "Mainspring uses the server postgresql://ada:***@db2/shop, because MAINSPRING_DATABASE_URL names it.",
    ]
    assert given + directory + by_directory_variable + by_url_variable == [(logging.INFO, each) for each in sentences]


async def test_an_application_tells_of_its_own_choice_and_not_of_what_it_was_given(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreachable(location: DatabaseLocation) -> Store:
        raise DatabaseUnreachable("this is a test of what comes before")

    monkeypatch.setattr(wiring, "open_store", unreachable)
    chose, was_given = Mainspring(), Mainspring()
    was_given.use(DatabaseLocation(url=URL))

    for app in (was_given, chose, chose):
        with caplog.at_level(logging.INFO, "mainspring"), pytest.raises(DatabaseUnreachable):
            await app.services()

    assert [record.getMessage() for record in caplog.records] == [DatabaseLocation.chosen().explanation]


def test_a_wrong_url_names_the_variable_that_it_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_DATABASE_URL", "mysql://ada:secret@db/shop")

    with pytest.raises(InvalidInput, match=r"^MAINSPRING_DATABASE_URL is 'mysql://ada:\*\*\*@db/shop'; it must begin"):
        DatabaseLocation.chosen()


@pytest.mark.parametrize("value", ["1", "true", "yes"])
@pytest.mark.parametrize("directory", [None, "/srv/data"])
def test_where_a_server_is_required_the_embedded_one_is_refused(
    monkeypatch: pytest.MonkeyPatch, value: str, directory: str | None
) -> None:
    monkeypatch.setenv("MAINSPRING_REQUIRE_SERVER", value)

    with pytest.raises(InvalidInput, match="Set MAINSPRING_DATABASE_URL=") as caught:
        DatabaseLocation.chosen(data_directory=directory)

    assert caught.value.code == "server-required"
    assert DatabaseLocation.chosen(URL).url == URL


@pytest.mark.parametrize("value", ["", "0", "false", "No", "off"])
def test_a_server_may_be_not_required(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("MAINSPRING_REQUIRE_SERVER", value)

    assert DatabaseLocation.chosen().data_directory is not None


def test_a_choice_does_not_show_its_password() -> None:
    assert "secret" not in f"{DatabaseLocation.chosen(URL)!r} {DatabaseLocation.chosen(URL)}"

"""Which URLs of databases are understood, and that no password is ever shown."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mainspring import Mainspring
from mainspring.errors import InvalidInput
from mainspring.store.hosts import hosts_of
from mainspring.store.urls import checked_url, without_password

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("url", "understood"),
    [
        ("postgresql://ada:pw@db/shop", "postgresql://ada:pw@db/shop"),
        ("postgres://ada@db:6432/shop", "postgresql://ada@db:6432/shop"),
        ("postgresql+asyncpg://ada@db/shop", "postgresql://ada@db/shop"),
        ("postgresql+asyncpg://db/shop?ssl=require", "postgresql://db/shop?sslmode=require"),
        ("postgresql+psycopg://db/shop", "postgresql://db/shop"),
        ("postgresql+psycopg2://db/shop", "postgresql://db/shop"),
        ("POSTGRESQL://db/shop", "postgresql://db/shop"),
        (" postgresql://db/shop\n", "postgresql://db/shop"),
        ("postgresql:///shop", "postgresql:///shop"),
        (
            "postgresql://ada@/shop?host=/run/postgresql&port=5433",
            "postgresql://ada@/shop?host=/run/postgresql&port=5433",
        ),
        ("postgresql://db1:5432,db2:5433,db3/shop", "postgresql://db1:5432,db2:5433,db3/shop"),
        ("postgresql://ada@[::1]:5432/shop", "postgresql://ada@[::1]:5432/shop"),
        ("postgresql://a%40b:p%2Fw%23@db/shop", "postgresql://a%40b:p%2Fw%23@db/shop"),
        ("postgresql://db/shop?user=ada@corp", "postgresql://db/shop?user=ada@corp"),
    ],
)
def test_urls_are_understood_whoever_they_were_written_for(url: str, understood: str) -> None:
    assert checked_url(url) == understood


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("mysql://ada:secret@db/shop", "must begin with postgresql://"),
        ("mysql+pymysql://ada:secret@db/shop", "must begin with postgresql://"),
        ("sqlite:///shop.db", "must begin with postgresql://"),
        ("sqlite://", "must begin with postgresql://"),
        ("postgresql://", "must name a server or a database after postgresql://"),
        ("postgres://", "must name a server or a database after postgresql://"),
        ("postgresql", "must begin with postgresql://"),
        ("redis://:secret@db:6379/0", "must begin with postgresql://"),
        ("", "must begin with postgresql://"),
        ("db/shop", "must begin with postgresql://"),
        ("ada:secret@db/shop", "must begin with postgresql://"),
        ("host=db dbname=shop password=secret", "must begin with postgresql://"),
        ("host=db password='se cret' dbname=shop", "must begin with postgresql://"),
        ("host=db PASSWORD = 'se\\' cret'", "must begin with postgresql://"),
        ("host=db password=se@cret", "must begin with postgresql://"),
        ("host=db password=12?user=cret", "must begin with postgresql://"),
        ("jdbc:postgresql://db/shop?user=ada&password=secret", "must begin with postgresql://"),
        ("Server=db;Password=secret;Database=shop", "must begin with postgresql://"),
        ("https://ada:secret@db/shop", "must begin with postgresql://"),
        ("postgresql://ada:se#cret@db/shop", "must have no # in it"),
        ("postgresql://ada:secret@db/shop#x", "must have no # in it"),
        ("postgresql://ada:sec ret@db/shop", "must have no blanks"),
        ("postgresql://ada:secret\x00@db/shop", "must have no blanks and no control characters"),
        ("postgresql://ada:se@cret@db/shop", "must have no bare @ or / in its user or password"),
        ("postgresql://ada:12/secret@db/shop", "must have no bare @ or / in its user or password"),
        ("postgresql://ada:se/cret@db/shop", "must have no bare @ or / in its user or password"),
        ("postgresql://ada:se://cret@db/shop", "must have no bare @ or / in its user or password"),
        ("ada:secret://@db/shop", "must begin with postgresql://"),
        ("postgresql://ada:se?cret@db/shop", "must be a URL"),
        ("postgresql://ada:secret", "must have a number from 1 to 65535 as its port"),
        ("postgresql://ada:secret@db:99999/shop", "must have a number from 1 to 65535 as its port"),
        ("postgresql://ada:secret@db:/shop?port=x", "must have a number from 1 to 65535 as its port"),
        ("postgresql://ada:secret@[::1/shop", "brackets around IPv6"),
        ("postgresql://ada:secret@db/shop?sslmode", "must be a URL"),
    ],
)
def test_what_is_no_url_of_postgresql_is_refused_in_words_and_without_its_password(url: str, rule: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        checked_url(url)

    said = f"{caught.value!r} {caught.value} {caught.value.fields}"
    assert caught.value.code == "invalid-database-url"
    assert str(caught.value).startswith("database_url is ")
    assert rule in str(caught.value)
    assert caught.value.hint
    assert "cret" not in said
    assert "sec" not in said


def test_what_is_no_text_is_refused_without_being_shown() -> None:
    with pytest.raises(InvalidInput, match=r"database_url is a bytes; it must be a string\. Give its text"):
        checked_url(b"postgresql://ada:secret@db/shop")


def test_an_application_refuses_a_wrong_url_where_it_is_written() -> None:
    with pytest.raises(InvalidInput, match=r"database_url is 'mysql://ada:\*\*\*@db/shop'"):
        Mainspring("mysql://ada:secret@db/shop")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada:secret@db:5432/shop", "postgresql://ada:***@db:5432/shop"),
        ("postgresql://ada@db/shop", "postgresql://ada@db/shop"),
        ("postgresql://db1:5432,db2:5433/shop", "postgresql://db1:5432,db2:5433/shop"),
        ("postgresql://db/shop?password=secret&user=ada", "postgresql://db/shop?password=***&user=ada"),
        ("postgresql://db/shop?sslpassword=secret", "postgresql://db/shop?sslpassword=***"),
        ("postgresql://db/shop?pass%77ord=secret&user=ada", "postgresql://db/shop?***&user=ada"),
        ("postgresql://db/shop?user=ada;password=secret", "postgresql://db/shop?user=***"),
        ("postgresql://h:5432/db?user=u&password=se@cret", "postgresql://h:***"),
        ("postgresql://u:secret@h/db?password=se@cret", "postgresql://u:***"),
        ("postgresql://ada:12?user=cret@db/shop", "postgresql://ada:***"),
        ("postgresql://ada:se/cret", "postgresql://ada:***"),
        ("ada://secret@db/shop", "ada:***@db/shop"),
        ("postgresql://[::1]:5432,db/shop", "postgresql://[::1]:5432,db/shop"),
        ("postgresql://ada:a@b:c@db/shop", "postgresql://ada:***@db/shop"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


def _quoted(password: str) -> str:
    escaped = password.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SPELLINGS: dict[str, Callable[[str], str]] = {
    "user-info": "postgresql://ada:{}@db:5432/shop".format,
    "user-info, encoded": lambda password: f"postgresql://ada:{quote(password, safe='')}@db/shop",
    "user-info and query": "postgres://ada:{}@db/shop?sslmode=require".format,
    "query": "postgresql://db:5432/shop?user=ada&password={}".format,
    "query, encoded": lambda password: f"postgresql://db/shop?password={quote(password, safe='')}&user=ada",
    "query, encoded name": "postgresql://db/shop?pass%77ord={}&sslmode=require".format,
    "query, another name": "postgresql://ada@db/shop?sslpassword={}".format,
    "keyword": "host=db password={} dbname=shop".format,
    "keyword, quoted": lambda password: f"host=db password={_quoted(password)} dbname=shop",
    "keyword, with blanks": lambda password: f"host=db PASSWORD = {_quoted(password)}",
    "another database": "mysql://ada:{}@db/shop".format,
    "no scheme": "ada:{}@db/shop".format,
}
SECRET = "S3cr3t"
some_text = some.text("aZ7@:/?#&=%'\"\\ +[],;.-é\n", max_size=8)


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(password=some.one_of(some.text(), some_text))
def test_no_spelling_shows_the_password(spelling: str, password: str) -> None:
    others = _said(SPELLINGS[spelling]("***")) + _said(SPELLINGS[spelling](""))

    assert len(password) < 3 or password in others or password not in _said(SPELLINGS[spelling](password))


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(before=some_text, after=some_text)
def test_no_spelling_shows_a_part_of_the_password(spelling: str, before: str, after: str) -> None:
    assert SECRET not in _said(SPELLINGS[spelling](before + SECRET + after))


def _said(url: str) -> str:
    """All that anybody says about a URL."""
    try:
        return without_password(checked_url(url))
    except InvalidInput as error:
        return f"{error!r} {error.fields} {without_password(url)}"


def test_every_port_that_passes_is_read() -> None:
    assert [host.port for host in hosts_of(checked_url("postgresql://a:1,b:65535,[::1]:5/x"))] == [1, 65_535, 5]

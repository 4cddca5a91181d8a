"""From nothing to a working server, and to a second start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded import EmbeddedServer

from .users import has_ended, is_alive, query

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


async def test_the_first_use_makes_starts_and_stops_a_server(place: Path) -> None:
    with EmbeddedServer.acquire(place / "new" / "data") as server:
        assert await query(server.dsn, "select current_database()") == "mainspring"
        assert await query(server.dsn, "select current_user") == "mainspring"
        assert is_alive(server.pid)
    assert has_ended(server.pid)


async def test_text_is_unicode_and_ordered_by_bytes(acquire: Callable[..., EmbeddedServer]) -> None:
    server = acquire()
    assert await query(server.dsn, "show server_encoding") == "UTF8"
    assert await query(server.dsn, "select upper('ä') || (lower('Z') < 'ä') || ('Z' < 'a')") == "Ätruetrue"


async def test_data_pages_carry_checksums(acquire: Callable[..., EmbeddedServer]) -> None:
    assert await query(acquire().dsn, "show data_checksums") == "on"


async def test_what_was_written_is_there_after_the_next_start(acquire: Callable[..., EmbeddedServer]) -> None:
    first = acquire()
    await query(first.dsn, "create table kept as select 42 as answer")
    first.release()
    assert await query(acquire().dsn, "select answer from kept") == 42


def test_the_connection_string_serves_psycopg_too(acquire: Callable[..., EmbeddedServer]) -> None:
    with psycopg.connect(acquire().dsn) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


async def test_a_connection_string_can_name_another_database(acquire: Callable[..., EmbeddedServer]) -> None:
    server = acquire()
    await query(server.dsn, 'create database "a/b c"')
    assert await query(server.dsn_for("a/b c"), "select current_database()") == "a/b c"


def test_progress_is_told_in_sentences(place: Path) -> None:
    said: list[str] = []
    directory = place / "data"
    with EmbeddedServer.acquire(directory, unsafe_for_tests=True, say=said.append) as server:
        version = server.version
    assert said == [
        f"preparing PostgreSQL {version} in {directory}",
        f"starting PostgreSQL {version} in {directory}",
        f"stopping PostgreSQL in {directory}",
    ]


def test_the_version_is_that_of_the_programs(acquire: Callable[..., EmbeddedServer]) -> None:
    server = acquire()
    assert server.version == server.binaries.version


def test_a_released_handle_is_of_no_use(acquire: Callable[..., EmbeddedServer]) -> None:
    server = acquire()
    server.release()
    server.release()  # harmless
    with pytest.raises(EmbeddedServerError) as caught:
        server.ensure_running()
    assert caught.value.code == "embedded-server-released"


def test_a_server_whose_directory_was_deleted_is_stopped(
    acquire: Callable[..., EmbeddedServer], data_directory: Path
) -> None:
    server = acquire()
    data_directory.rename(data_directory.with_name("elsewhere"))
    server.release()
    assert has_ended(server.pid)

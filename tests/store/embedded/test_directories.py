"""Which directories we take, which we refuse, and that a refusal touches nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded import EmbeddedServer, default_data_directory

from .users import kill_all, query

if TYPE_CHECKING:
    from collections.abc import Callable

    from .users import UserProcess

    Acquire = Callable[..., EmbeddedServer]

ORDINARY_UID = 65534
only_as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can take another account")


def refusal(directory: Path) -> EmbeddedServerError:
    with pytest.raises(EmbeddedServerError) as caught:
        EmbeddedServer.acquire(directory, unsafe_for_tests=True)
    assert caught.value.hint
    return caught.value


def test_a_directory_with_strange_files_is_refused_and_left_alone(place: Path) -> None:
    (place / "thesis.txt").write_text("years of work")
    error = refusal(place)
    assert error.code == "embedded-data-not-ours"
    assert "'thesis.txt'" in error.message
    assert os.listdir(place) == ["thesis.txt"]


async def test_an_empty_directory_is_taken(acquire: Acquire, place: Path) -> None:
    (place / "empty").mkdir(mode=0o755)
    assert await query(acquire(place / "empty").dsn, "select 1") == 1


def test_a_path_below_a_file_is_refused(place: Path) -> None:
    (place / "file").write_text("")
    error = refusal(place / "file" / "data")
    assert error.code == "embedded-directory-not-writable"
    assert "Not a directory" in error.message


@only_as_root
def test_a_directory_without_permission_is_refused(new_user: Callable[[], UserProcess], place: Path) -> None:
    user = new_user()
    user.ask("become", uid=ORDINARY_UID)
    user.tell("acquire", directory=str(place / "data"), unsafe_for_tests=True)
    answer = user.hear()
    assert answer["error"] == "embedded-directory-not-writable"
    assert f"cannot write to {place}/data: Permission denied." in answer["message"]


@only_as_root
def test_an_ordinary_user_can_use_it_all(new_user: Callable[[], UserProcess], place: Path) -> None:
    os.chown(place, ORDINARY_UID, ORDINARY_UID)
    first, second = new_user(), new_user()
    for user in (first, second):
        user.ask("become", uid=ORDINARY_UID)
    assert first.acquire(place / "data") == second.acquire(place / "data")
    assert first.ask("query", statement="select 1") == 1
    assert os.stat(place / "data").st_mode & 0o777 == 0o700
    assert first.exit() == second.exit() == 0


@only_as_root
async def test_root_and_the_owner_share_the_owners_server(
    acquire: Acquire, new_user: Callable[[], UserProcess], place: Path
) -> None:
    (place / "owned").mkdir()
    os.chown(place / "owned", ORDINARY_UID, ORDINARY_UID)
    server, owner = acquire(place / "owned"), new_user()
    owner.ask("become", uid=ORDINARY_UID)
    assert os.stat(f"/proc/{server.pid}").st_uid == ORDINARY_UID
    assert owner.acquire(place / "owned") == server.pid
    server.release()
    kill_all([server.pid])
    assert owner.ask("ensure_running") != server.pid


@only_as_root
def test_a_directory_the_servers_account_cannot_enter_is_refused(place: Path) -> None:
    (place / "closed").mkdir(mode=0o700)
    error = refusal(place / "closed" / "data")
    assert error.code == "embedded-directory-unreachable"
    assert f"cannot enter {place}/closed." in error.message
    assert (place / "closed").stat().st_mode & 0o777 == 0o700
    assert os.listdir(place / "closed") == []


@only_as_root
def test_the_server_of_root_runs_under_another_account(acquire: Acquire, data_directory: Path) -> None:
    server = acquire()
    owner = (data_directory / "postgresql").stat().st_uid
    assert os.stat(f"/proc/{server.pid}").st_uid == owner != 0


@only_as_root
async def test_a_strict_umask_of_root_does_not_lock_the_server_out(acquire: Acquire, place: Path) -> None:
    before = os.umask(0o077)
    try:
        server = acquire(place / "a" / "b")
    finally:
        os.umask(before)
    assert await query(server.dsn, "select 1") == 1


@only_as_root
def test_data_given_to_someone_else_is_refused(data_directory: Path) -> None:
    os.chown(data_directory / "postgresql", 0, 0)
    error = refusal(data_directory)
    assert error.code == "embedded-data-wrong-owner"
    assert "belongs to uid 0" in error.message


def test_data_of_another_major_version_is_refused(data_directory: Path) -> None:
    (data_directory / "postgresql" / "PG_VERSION").write_text("16\n")
    error = refusal(data_directory)
    assert error.code == "embedded-data-wrong-version"
    assert "was made by PostgreSQL 16" in error.message
    assert "MAINSPRING_PG_BIN" in str(error.hint)


def test_data_without_its_version_is_refused(data_directory: Path) -> None:
    (data_directory / "postgresql" / "PG_VERSION").unlink()
    assert refusal(data_directory).code == "embedded-data-damaged"


def test_a_server_that_does_not_start_says_why(acquire: Acquire, data_directory: Path) -> None:
    (data_directory / "postgresql" / "global" / "pg_control").unlink()
    error = refusal(data_directory)
    assert error.code == "embedded-start-failed"
    assert "it gave up. Its last words:" in error.message
    assert "pg_control" in error.message


def test_a_setting_the_server_does_not_know_says_which(data_directory: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="no_such_setting") as caught:
        EmbeddedServer.acquire(data_directory, settings={"no_such_setting": "1"}, unsafe_for_tests=True)
    assert caught.value.code == "embedded-start-failed"


def test_the_default_is_what_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_DATA_DIR", "/chosen")
    assert default_data_directory() == Path("/chosen")


@pytest.mark.parametrize(
    ("uid", "shared", "expected"),
    [
        (0, "/shared", "/var/lib/mainspring/data"),
        (1000, "/shared", "/shared/mainspring/data"),
        (1000, "relative/is/ignored", "/home/someone/.local/share/mainspring/data"),
        (1000, "", "/home/someone/.local/share/mainspring/data"),
    ],
)
def test_the_default_is_the_place_for_such_data(
    monkeypatch: pytest.MonkeyPatch, uid: int, shared: str, expected: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_DATA_HOME", shared)
    assert default_data_directory() == Path(expected)

"""One server per data directory, however many processes use it; the last one stops it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded import postmaster

from .users import has_ended, is_alive, kill_all, query

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.store.embedded import EmbeddedServer

    from .users import UserProcess

    Acquire = Callable[..., EmbeddedServer]
    NewUser = Callable[[], UserProcess]

ROUNDS = 8


async def test_two_handles_of_one_process_share_the_server(acquire: Acquire) -> None:
    first, second = acquire(), acquire()
    assert first.pid == second.pid
    first.release()
    assert await query(second.dsn, "select 1") == 1
    second.release()
    assert has_ended(second.pid)


async def test_another_process_shares_the_server(acquire: Acquire, new_user: NewUser, data_directory: Path) -> None:
    server, user = acquire(), new_user()
    assert user.acquire(data_directory) == server.pid
    assert user.ask("query", statement="select 1") == 1


def test_the_last_user_stops_the_server_whoever_started_it(
    acquire: Acquire, new_user: NewUser, data_directory: Path
) -> None:
    server, user = acquire(), new_user()
    user.acquire(data_directory)
    server.release()
    assert is_alive(server.pid)
    user.ask("release")
    assert has_ended(server.pid)


async def test_a_link_to_the_directory_leads_to_the_same_server(acquire: Acquire, data_directory: Path) -> None:
    link = data_directory.with_name("link")
    link.symlink_to(data_directory)
    assert acquire().pid == acquire(link).pid


def test_a_process_that_just_ends_stops_the_server(new_user: NewUser, data_directory: Path) -> None:
    user = new_user()
    pid = user.acquire(data_directory)
    assert user.exit() == 0
    assert has_ended(pid)


def test_a_starter_that_just_ends_leaves_the_server_to_the_others(
    acquire: Acquire, new_user: NewUser, data_directory: Path
) -> None:
    starter = new_user()
    pid = starter.acquire(data_directory)
    server = acquire()
    assert starter.exit() == 0
    assert server.pid == pid
    assert is_alive(pid)
    server.release()
    assert has_ended(pid)


def test_a_forked_child_does_not_stop_its_parents_server(new_user: NewUser, data_directory: Path) -> None:
    user = new_user()
    pid = user.acquire(data_directory)
    assert user.ask("release_in_a_forked_child") == 0
    assert is_alive(pid)
    assert user.ask("query", statement="select 1") == 1


def test_a_forked_child_that_lives_on_does_not_keep_the_server(
    acquire: Acquire, new_user: NewUser, data_directory: Path
) -> None:
    server, parent = acquire(), new_user()
    parent.acquire(data_directory)
    child = parent.ask("fork_and_linger")
    parent.process.kill()
    parent.process.wait()
    server.release()
    assert is_alive(child)
    assert has_ended(server.pid)
    kill_all([child])


def test_eight_processes_at_once_get_one_server(new_user: NewUser, place: Path) -> None:
    users = [new_user() for _ in range(8)]
    for user in users:
        user.tell("acquire", directory=str(place / "data"), unsafe_for_tests=True)
    assert len({user.hear()["result"]["pid"] for user in users}) == 1
    assert all(user.ask("query", statement="select 1") == 1 for user in users)


def test_threads_of_one_process_get_one_server(acquire: Acquire) -> None:
    with ThreadPoolExecutor(4) as threads:
        servers = list(threads.map(lambda _: acquire(), range(4)))
    assert len({server.pid for server in servers}) == 1


def test_starting_and_stopping_never_race(new_user: NewUser, data_directory: Path) -> None:
    users = [new_user() for _ in range(4)]
    for user in users:
        user.tell("hammer", directory=str(data_directory), rounds=ROUNDS)
    assert [user.hear()["result"] for user in users] == [ROUNDS] * 4
    assert not (data_directory / "postgresql" / "postmaster.pid").exists()


async def test_a_server_in_another_container_is_shared_too(acquire: Acquire, monkeypatch: pytest.MonkeyPatch) -> None:
    first = acquire()
    monkeypatch.setattr(postmaster, "PROC", Path("/proc/self"))  # as there: its process is not to be seen
    second = acquire()
    assert second.pid == first.pid
    assert await query(second.dsn, "select 1") == 1
    second.release()
    monkeypatch.undo()
    assert is_alive(first.pid)


def test_a_newcomer_is_told_when_the_running_server_is_not_durable(acquire: Acquire) -> None:
    acquire()
    with pytest.raises(EmbeddedServerError, match="already runs for other processes") as caught:
        acquire(unsafe_for_tests=False)
    assert caught.value.code == "embedded-settings-differ"


async def test_a_refused_newcomer_leaves_the_server_running(acquire: Acquire) -> None:
    server = acquire()
    with pytest.raises(EmbeddedServerError):
        acquire(unsafe_for_tests=False)
    assert await query(server.dsn, "select 1") == 1

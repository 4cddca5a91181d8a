"""Kill -9 of anyone at any time: the next user heals what was left, and committed data is there."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.waiting import eventually

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded import sharing

from .users import family_of, has_ended, is_alive, kill_all, processes_naming, query

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mainspring.store.embedded import EmbeddedServer

    from .users import UserProcess

    Acquire = Callable[..., EmbeddedServer]
    NewUser = Callable[[], UserProcess]


def test_an_orphaned_server_is_adopted_and_stopped_by_the_next_user(
    acquire: Acquire, new_user: NewUser, data_directory: Path
) -> None:
    starter = new_user()
    pid = starter.acquire(data_directory)
    starter.kill()
    assert is_alive(pid)
    server = acquire()
    assert server.pid == pid
    server.release()
    assert has_ended(pid)


async def test_an_orphan_that_was_started_differently_is_replaced(
    acquire: Acquire, new_user: NewUser, data_directory: Path
) -> None:
    starter = new_user()
    pid = starter.acquire(data_directory, settings={"work_mem": "5MB"})
    starter.kill()
    server = acquire(settings={"work_mem": "6MB"})
    assert server.pid != pid
    assert await query(server.dsn, "show work_mem") == "6MB"


async def test_everything_killed_at_once_recovers_with_its_data(
    acquire: Acquire, new_user: NewUser, data_directory: Path
) -> None:
    user = new_user()
    pid = user.ask("acquire", directory=str(data_directory))["pid"]
    user.ask("query", statement="create table kept as select 42 as answer")
    kill_all([user.process.pid, *family_of(pid)])
    server = acquire(unsafe_for_tests=False)
    assert server.pid != pid
    assert await query(server.dsn, "select answer from kept") == 42


async def test_a_killed_server_is_started_again_for_its_user(acquire: Acquire) -> None:
    server = acquire()
    killed = server.pid
    kill_all([killed])
    server.ensure_running()
    assert server.pid != killed
    assert await query(server.dsn, "select 1") == 1


def test_any_user_may_start_a_killed_server_again_and_all_find_it(
    acquire: Acquire, new_user: NewUser, data_directory: Path
) -> None:
    server, users = acquire(), [new_user(), new_user()]
    for user in users:
        user.acquire(data_directory)
    kill_all([server.pid])
    for user in users:
        user.tell("ensure_running")
    server.ensure_running()
    assert {user.hear()["result"] for user in users} == {server.pid}
    assert all(user.ask("query", statement="select 1") == 1 for user in users)


async def test_a_server_started_again_keeps_what_its_first_user_asked_for(
    acquire: Acquire, new_user: NewUser, data_directory: Path
) -> None:
    first, second = acquire(settings={"work_mem": "5MB"}), new_user()
    second.acquire(data_directory)
    kill_all([first.pid])
    second.ask("ensure_running")
    assert await query(first.dsn, "show work_mem") == "5MB"


def test_asking_a_living_server_to_run_changes_nothing(acquire: Acquire) -> None:
    server = acquire()
    pid = server.pid
    server.ensure_running()
    assert server.pid == pid


async def test_a_reused_process_id_does_not_pass_for_the_server(acquire: Acquire, data_directory: Path) -> None:
    """The worst stranger: alive, of the server's own account, under the process id in both stale files."""
    server = acquire()
    socket_lock = data_directory / "socket" / ".s.PGSQL.5432.lock"
    stale = [data_directory / "postgresql" / "postmaster.pid", socket_lock]
    account = server.directory.account
    with subprocess.Popen(["sleep", "60"], user=account.uid if account.switches else None) as stranger:
        kill_all(family_of(server.pid))
        for file in stale:
            lines = file.read_text().splitlines(keepends=True)
            file.write_text("".join([f"{stranger.pid}\n", *lines[1:]]))
        server.ensure_running()
        assert server.pid != stranger.pid
        assert await query(server.dsn, "select 1") == 1
        server.release()
        assert stranger.poll() is None
        stranger.kill()


def test_processes_of_a_killed_server_are_waited_for(acquire: Acquire, monkeypatch: pytest.MonkeyPatch) -> None:
    server = acquire()
    _, *children = family_of(server.pid)
    for pid in children:
        os.kill(pid, signal.SIGSTOP)
    kill_all([server.pid])
    with monkeypatch.context() as impatience:
        impatience.setattr(sharing, "ORPHANS_PATIENCE", 0.2)
        with pytest.raises(EmbeddedServerError, match="earlier PostgreSQL still use") as caught:
            server.ensure_running()
    assert caught.value.code == "embedded-server-busy"
    kill_all(children)
    server.ensure_running()


def killed_half_way(new_user: NewUser, place: Path) -> Path:
    """A directory whose first user was killed while it was made; another one if we came too late."""
    for number in range(10):
        directory = place / f"fresh-{number}"
        user = new_user()
        user.tell("acquire", directory=str(directory), unsafe_for_tests=True)
        assert eventually((directory / "staging" / "base").exists)
        user.kill()
        if not (directory / "postgresql").exists():
            return directory
    raise AssertionError("always too late")


@pytest.mark.parametrize("survivor", ["initdb", "nobody"])
async def test_a_first_start_killed_half_way_heals(
    acquire: Acquire, new_user: NewUser, place: Path, survivor: str
) -> None:
    directory = killed_half_way(new_user, place)
    if survivor == "nobody":
        kill_all(list(processes_naming(str(directory))))
    assert not (directory / "postgresql").exists()
    server = acquire(directory)
    assert await query(server.dsn, "select 1") == 1
    assert not (directory / "staging").exists()


def test_a_starter_killed_while_the_server_starts_leaves_it_to_the_next(
    acquire: Acquire, new_user: NewUser, data_directory: Path
) -> None:
    user = new_user()
    user.tell("acquire", directory=str(data_directory), unsafe_for_tests=True)
    assert eventually(lambda: bool(lock_file(data_directory)))
    user.kill()
    pid = int(lock_file(data_directory)[0])
    assert acquire().pid == pid


def lock_file(data_directory: Path) -> list[str]:
    """The lines of the server's lock file. It is made first, and written then."""
    try:
        return (data_directory / "postgresql" / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return []


def test_a_server_that_is_already_stopping_is_waited_for(
    acquire: Acquire, new_user: NewUser, data_directory: Path
) -> None:
    user = new_user()
    pid = user.acquire(data_directory)
    user.kill()
    os.kill(pid, signal.SIGINT)
    assert eventually(lambda: "ready" not in map(str.strip, lock_file(data_directory)))
    server = acquire()
    server.ensure_running()
    assert server.pid != pid


def test_ctrl_c_reaches_the_user_and_not_the_server(acquire: Acquire, new_user: NewUser, data_directory: Path) -> None:
    starter = new_user()
    pid = starter.acquire(data_directory)
    server = acquire()
    starter.interrupt_group()
    assert is_alive(pid)
    server.ensure_running()
    assert server.pid == pid


def test_a_server_that_ignores_the_polite_signal_is_stopped_all_the_same(
    acquire: Acquire, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = acquire()
    monkeypatch.setattr(sharing, "FAST_SHUTDOWN_PATIENCE", 0.1)
    assert eventually(lambda: bool(checkpointers(server.pid)))  # it takes its name a little later
    os.kill(checkpointers(server.pid)[0], signal.SIGSTOP)  # the fast shutdown now waits for its last checkpoint
    pid = server.pid
    server.release()
    assert has_ended(pid)


def checkpointers(postmaster: int) -> list[int]:
    return list(set(processes_naming("checkpointer")) & set(family_of(postmaster)))

"""How the server is reached: by a private socket always, by TCP with a password when asked."""

from __future__ import annotations

import os
import shutil
import socket
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg
import pytest

from mainspring.errors import EmbeddedServerError

from .users import query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mainspring.store.embedded import EmbeddedServer

    from .users import UserProcess

    Acquire = Callable[..., EmbeddedServer]


@pytest.fixture
def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def short_folders() -> Iterator[list[Path]]:
    """Socket folders in /tmp that a test planted or provoked."""
    folders: list[Path] = []
    yield folders
    for folder in folders:
        folder.unlink() if folder.is_symlink() else shutil.rmtree(folder, ignore_errors=True)


def socket_folder(server: EmbeddedServer) -> Path:
    return Path((server.directory.postgresql / "postmaster.pid").read_text().splitlines()[4])


def test_the_socket_is_private(acquire: Acquire) -> None:
    folder = socket_folder(acquire())
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "name",
    ["with space", "Prüfung 試験", "comma,colon:'quote\"", "-dash", "a" * 90, "/".join(["deep" * 20] * 6)],
)
async def test_any_path_will_do(acquire: Acquire, data_directory: Path, place: Path, name: str) -> None:
    target = place / name / "data"
    target.parent.mkdir(parents=True)
    data_directory.rename(target)
    server = acquire(target)
    assert await query(server.dsn, "select 1") == 1
    folder = socket_folder(server)
    assert len(os.fsencode(folder)) < 80
    server.release()
    assert not folder.exists() or folder.is_relative_to(target)


def test_a_squatted_socket_folder_is_refused(
    acquire: Acquire, data_directory: Path, place: Path, short_folders: list[Path]
) -> None:
    target = data_directory.rename(place / "with space")
    server = acquire(target)
    folder = socket_folder(server)
    server.release()
    short_folders.append(folder)
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    with pytest.raises(EmbeddedServerError, match="not a private folder") as caught:
        acquire(target)
    assert caught.value.code == "embedded-socket-unsafe"


def test_a_planted_link_is_not_followed(
    acquire: Acquire, data_directory: Path, place: Path, short_folders: list[Path]
) -> None:
    target = data_directory.rename(place / "with space")
    server = acquire(target)
    folder = socket_folder(server)
    server.release()
    short_folders.append(folder)
    (place / "victim").mkdir(mode=0o700)
    folder.symlink_to(place / "victim")
    with pytest.raises(EmbeddedServerError):
        acquire(target)
    assert (place / "victim").stat().st_uid == os.geteuid()


async def test_nothing_listens_on_tcp_unless_asked(acquire: Acquire) -> None:
    server = acquire()
    assert server.tcp_dsn is None
    assert await query(server.dsn, "show listen_addresses") == ""


async def test_tcp_asks_for_the_password(acquire: Acquire, data_directory: Path, free_port: int) -> None:
    server = acquire(tcp_port=free_port)
    assert server.tcp_dsn is not None
    assert await query(server.tcp_dsn, "select 1") == 1
    assert await query(server.dsn, "select 1") == 1
    assert await query(server.dsn, "show listen_addresses") == "127.0.0.1"
    assert (data_directory / "password").stat().st_mode & 0o777 == 0o600
    with pytest.raises(asyncpg.InvalidPasswordError):
        await query(f"postgresql://mainspring:guess@127.0.0.1:{free_port}/mainspring", "select 1")


async def test_a_lost_password_is_replaced(acquire: Acquire, data_directory: Path, free_port: int) -> None:
    first = acquire(tcp_port=free_port)
    first.release()
    (data_directory / "password").unlink()
    second = acquire(tcp_port=free_port)
    assert second.tcp_dsn is not None
    assert await query(second.tcp_dsn, "select 1") == 1


def test_a_taken_port_is_refused(acquire: Acquire) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        with pytest.raises(EmbeddedServerError, match=f"Port {port} of 127.0.0.1 is in use") as caught:
            acquire(tcp_port=port)
    assert caught.value.code == "embedded-port-taken"


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_an_impossible_port_is_refused(acquire: Acquire, port: int) -> None:
    with pytest.raises(EmbeddedServerError) as caught:
        acquire(tcp_port=port)
    assert caught.value.code == "embedded-port-invalid"


def test_a_port_the_running_server_does_not_have_is_refused(acquire: Acquire, free_port: int) -> None:
    acquire()
    with pytest.raises(EmbeddedServerError, match=f"no TCP port, not on TCP port {free_port}") as caught:
        acquire(tcp_port=free_port)
    assert caught.value.code == "embedded-settings-differ"


async def test_one_who_needs_no_port_shares_a_server_with_one(
    acquire: Acquire, new_user: Callable[[], UserProcess], data_directory: Path, free_port: int
) -> None:
    server, user = acquire(tcp_port=free_port), new_user()
    assert user.acquire(data_directory) == server.pid
    assert user.ask("query", statement="select 1") == 1

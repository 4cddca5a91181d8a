"""Each test has a data directory of its own; the costly first initialisation is done once and copied."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mainspring.store.embedded import EmbeddedServer

from .users import UserProcess, kill_all, processes_naming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    AcquireServer = Callable[..., EmbeddedServer]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAINSPRING_PG_BIN", "MAINSPRING_DATA_DIR", "MAINSPRING_CACHE_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)


def make_place(directory: Path) -> Path:
    """Not pytest's tmp_path: as root, that lies in a folder which the server's account cannot enter."""
    place = Path(tempfile.mkdtemp(prefix="place-", dir=directory))
    place.chmod(0o755)
    return place


def clear_place(place: Path) -> None:
    kill_all(list(processes_naming(str(place))))
    shutil.rmtree(place)


@pytest.fixture
def place(executable_directory: Path) -> Iterator[Path]:
    """An empty folder that every account may enter."""
    place = make_place(executable_directory)
    yield place
    clear_place(place)


@pytest.fixture(scope="session")
def template(executable_directory: Path) -> Iterator[Path]:
    place = make_place(executable_directory)
    with EmbeddedServer.acquire(place / "data", unsafe_for_tests=True):
        pass
    yield place / "data"
    clear_place(place)


@pytest.fixture
def data_directory(place: Path, template: Path) -> Path:
    """A data directory that was used before."""
    subprocess.run(["cp", "-a", template, place / "data"], check=True)
    return place / "data"


@pytest.fixture
def acquire(data_directory: Path) -> Iterator[AcquireServer]:
    """Acquire the server of `data_directory`; released at the latest when the test ends."""
    servers: list[EmbeddedServer] = []

    def acquire(directory: Path = data_directory, **options: object) -> EmbeddedServer:
        servers.append(EmbeddedServer.acquire(directory, **{"unsafe_for_tests": True, **options}))  # type: ignore[arg-type]
        return servers[-1]

    yield acquire
    for server in servers:
        server.release()


@pytest.fixture
def new_user() -> Iterator[Callable[[], UserProcess]]:
    """Start another process that can use a server."""
    users: list[UserProcess] = []

    def new_user() -> UserProcess:
        users.append(UserProcess())
        return users[-1]

    yield new_user
    for user in users:
        user.kill()

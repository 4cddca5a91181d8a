"""A user's handle on the embedded server of a data directory."""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded.binaries import find_binaries, reachable_binaries
from mainspring.store.embedded.cluster import DATABASE, USER
from mainspring.store.embedded.directory import claim_directory, socket_directory_of
from mainspring.store.embedded.locks import FileLock
from mainspring.store.embedded.postmaster import RECOVERY_PATIENCE, ready_postmaster
from mainspring.store.embedded.settings import Launch, remembered_launch, server_settings
from mainspring.store.embedded.sharing import provide_server, stop_server, stop_server_without_data

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType

    from mainspring.store.embedded.binaries import Binaries
    from mainspring.store.embedded.directory import DataDirectory
    from mainspring.store.embedded.postmaster import Postmaster

CHANGE_PATIENCE = RECOVERY_PATIENCE + 60.0

# Strong references: a forgotten handle is released at exit, not by the garbage collector, which may strike
# while this very thread holds change.lock and would then wait for itself.
_held: set[EmbeddedServer] = set()


class EmbeddedServer:
    """A share in the server of a data directory, from `acquire` to `release`. Threads may share a handle."""

    def __init__(
        self, directory: DataDirectory, binaries: Binaries, wanted: Launch, say: Callable[[str], None]
    ) -> None:
        self.directory = directory
        self.binaries = binaries
        self._wanted = wanted
        self._say = say
        self._acquired_by = os.getpid()
        self._one_thread = threading.Lock()
        self._change = FileLock(directory.open_file("change.lock"))
        self._users = FileLock(directory.open_file("users.lock"))
        self._postmaster: Postmaster | None = None

    @classmethod
    def acquire(
        cls,
        data_directory: Path,
        *,
        tcp_port: int | None = None,
        settings: Mapping[str, str] | None = None,
        unsafe_for_tests: bool = False,
        say: Callable[[str], None] | None = None,
    ) -> Self:
        """Use the server of a data directory, making and starting it if need be.

        `tcp_port` opens that port of 127.0.0.1 too, with a password. `settings` count when this call starts
        the server. `unsafe_for_tests` turns durability off: faster, and a power cut loses data. `say` is told
        of progress, in short sentences.
        """
        directory = claim_directory(data_directory)
        binaries = reachable_binaries(find_binaries(), directory.account)
        wanted = Launch(
            folder=str(binaries.folder),
            version=binaries.version,
            settings=server_settings(
                hba_file=directory.hba_file,
                socket_directory=socket_directory_of(directory),
                tcp_port=tcp_port,
                overrides=settings,
                unsafe_for_tests=unsafe_for_tests,
            ),
        )
        server = cls(directory, binaries, wanted, say or _say_nothing)
        _held.add(server)
        try:
            server._join()
        except BaseException:
            server.release()
            raise
        return server

    @property
    def pid(self) -> int:
        return self._seen.pid

    @property
    def version(self) -> str:
        """The version that runs, which may be another user's choice."""
        launch = remembered_launch(self.directory)
        return launch.version if launch else self.binaries.version

    @property
    def dsn(self) -> str:
        """The connection string of our database, by the private socket."""
        return self.dsn_for(DATABASE)

    def dsn_for(self, database: str) -> str:
        host = quote(str(self._seen.socket_directory), safe="/")
        return f"postgresql://{USER}@/{quote(database, safe='')}?host={host}&port={self._seen.port}"

    @property
    def tcp_dsn(self) -> str | None:
        """The connection string by TCP, with its password; None when no port was asked for."""
        launch = remembered_launch(self.directory)
        if launch is None or launch.tcp_port is None:
            return None
        password = quote(self.directory.password.read_text(), safe="")
        return f"postgresql://{USER}:{password}@127.0.0.1:{launch.tcp_port}/{DATABASE}"

    def ensure_running(self) -> None:
        """Start the server again if it died, whoever started it. A look at two small files while it lives."""
        self._refuse_released()
        if (found := ready_postmaster(self.directory.postgresql)) is not None:
            self._postmaster = found
            return
        self._join()

    def release(self) -> None:
        """Stop using the server; the last user stops it. Void when called twice or in a forked child."""
        if self not in _held or os.getpid() != self._acquired_by:
            return
        with self._one_thread:
            _held.discard(self)
            try:
                self._leave()
            finally:
                self._users.unlock()
                self._users.close()
                self._change.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    @property
    def _seen(self) -> Postmaster:
        if self._postmaster is None:
            raise _released()
        return self._postmaster

    def _join(self) -> None:
        with self._one_thread, self._change.held_exclusively(seconds=CHANGE_PATIENCE):
            alone = self._users.try_exclusive()
            self._users.share()
            self._postmaster = provide_server(self.directory, self.binaries, self._wanted, alone=alone, say=self._say)

    def _leave(self) -> None:
        with self._change.held_exclusively(seconds=CHANGE_PATIENCE):
            if not self._users.try_exclusive():
                return
            if self.directory.path.is_dir():
                stop_server(self.directory, say=self._say)
            elif self._postmaster is not None:
                stop_server_without_data(self.directory, self._postmaster.pid)

    def _refuse_released(self) -> None:
        if self not in _held or os.getpid() != self._acquired_by:
            raise _released()


def _released() -> EmbeddedServerError:
    return EmbeddedServerError(
        "This handle on the embedded PostgreSQL was released, or belongs to our parent process.",
        code="embedded-server-released",
        hint="Acquire a handle of your own with EmbeddedServer.acquire().",
    )


def _say_nothing(sentence: str) -> None:
    """The default for `say`."""


@atexit.register
def _release_all() -> None:
    for server in list(_held):
        server.release()

"""One server for all who share a data directory. Every function here is called with change.lock held."""

from __future__ import annotations

import os
import signal
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded import cluster
from mainspring.store.embedded.directory import remove_short_socket_directory
from mainspring.store.embedded.locks import FileLock, wait_until
from mainspring.store.embedded.postmaster import (
    IMMEDIATE_SHUTDOWN_PATIENCE,
    RECOVERY_PATIENCE,
    is_postmaster_of,
    ready_postmaster,
    reap_child,
    start,
    visible_postmaster,
)
from mainspring.store.embedded.settings import refuse_unmet_wishes, remembered_launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.store.embedded.binaries import Binaries
    from mainspring.store.embedded.directory import DataDirectory
    from mainspring.store.embedded.postmaster import Postmaster
    from mainspring.store.embedded.settings import Launch

SERVER_LOCK = "server.lock"
ORPHANS_PATIENCE = 60.0  # what a killed server leaves behind ends by itself, at the latest after its current query
FAST_SHUTDOWN_PATIENCE = 60.0


def provide_server(
    directory: DataDirectory, binaries: Binaries, wanted: Launch, *, alone: bool, say: Callable[[str], None]
) -> Postmaster:
    """The server of this directory: the one that runs, if it will do, else a new one.

    Alone, we may replace an orphan that was started differently. In company, we keep what others were given.
    """
    cluster.refuse_other_major(directory, binaries)
    given = remembered_launch(directory)
    if alone and given != wanted:
        stop_server(directory, say=say)
    launch = wanted if alone or given is None else replace(wanted, settings=given.settings)
    refuse_unmet_wishes(wanted, launch)
    with closing(FileLock(directory.open_file(SERVER_LOCK))) as lock:
        if (found := _running_server(directory, lock)) is None:
            return _start_anew(directory, binaries, launch, lock=lock.descriptor, say=say)
    refuse_unmet_wishes(wanted, given or wanted)  # an orphan in another container could not be replaced
    say(f"using the PostgreSQL that already runs in {directory.path}")
    return found


def stop_server(directory: DataDirectory, *, say: Callable[[str], None]) -> None:
    """Stop the server if one runs: fast, which ends sessions and writes a checkpoint; else at once."""
    with closing(FileLock(directory.open_file(SERVER_LOCK))) as lock:
        if not lock.try_exclusive():
            say(f"stopping PostgreSQL in {directory.path}")
            if (postmaster := visible_postmaster(directory.postgresql)) is not None:
                _end(directory, postmaster.pid)
            wait_until(lock.try_exclusive, seconds=IMMEDIATE_SHUTDOWN_PATIENCE)  # for the children to follow
        lock.unlock()
    remove_short_socket_directory(directory)


def stop_server_without_data(directory: DataDirectory, pid: int) -> None:
    """Stop a server whose data directory someone deleted: there is nothing left to save nor a lock to ask."""
    if is_postmaster_of(pid, directory.postgresql):
        _ends_after(directory, pid, signal.SIGQUIT, seconds=IMMEDIATE_SHUTDOWN_PATIENCE)
        reap_child(pid)


def _running_server(directory: DataDirectory, lock: FileLock) -> Postmaster | None:
    """The server, once it is ready; None once the lock is ours: then no process of any server lives."""
    found: Postmaster | None = None

    def settled() -> bool:
        nonlocal found
        found = ready_postmaster(directory.postgresql)
        return found is not None or lock.try_exclusive()

    def settled_or_starting() -> bool:
        return settled() or visible_postmaster(directory.postgresql) is not None

    if not wait_until(settled_or_starting, seconds=ORPHANS_PATIENCE) or not wait_until(
        settled, seconds=RECOVERY_PATIENCE
    ):
        raise _still_held(directory)
    return found


def _start_anew(
    directory: DataDirectory, binaries: Binaries, launch: Launch, *, lock: int, say: Callable[[str], None]
) -> Postmaster:
    if cluster.data_major(directory) is None:
        say(f"preparing PostgreSQL {binaries.version} in {directory.path}")
        cluster.make_cluster(directory, binaries, lock=lock, durable=launch.durable)
    if launch.tcp_port is not None and not directory.password.exists():
        cluster.make_password(directory, binaries, lock=lock)
    say(f"starting PostgreSQL {binaries.version} in {directory.path}")
    return start(directory, binaries, launch, lock=lock)


def _end(directory: DataDirectory, pid: int) -> None:
    if not _ends_after(directory, pid, signal.SIGINT, seconds=FAST_SHUTDOWN_PATIENCE):
        _ends_after(directory, pid, signal.SIGQUIT, seconds=IMMEDIATE_SHUTDOWN_PATIENCE)
    reap_child(pid)


def _ends_after(directory: DataDirectory, pid: int, number: signal.Signals, *, seconds: float) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
    return wait_until(lambda: not is_postmaster_of(pid, directory.postgresql), seconds=seconds)


def _still_held(directory: DataDirectory) -> EmbeddedServerError:
    return EmbeddedServerError(
        f"Processes of an earlier PostgreSQL still use {directory.path} and no ready server is in sight.",
        code="embedded-server-busy",
        hint="It may run in another container, or still end a long query. Stop it, or try again later.",
        path=str(directory.path),
    )

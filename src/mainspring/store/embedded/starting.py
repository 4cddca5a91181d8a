"""Starting the server as our own child and waiting until it is ready."""

from __future__ import annotations

import atexit
import errno
import os
import signal
import socket
import subprocess
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded.cluster import HBA
from mainspring.store.embedded.commands import start_as
from mainspring.store.embedded.postmaster import Postmaster, forget_dead_postmaster, ready_postmaster
from mainspring.store.embedded.sockets import prepare_socket_directory
from mainspring.store.embedded.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from mainspring.store.embedded.binaries import Binaries
    from mainspring.store.embedded.directory import DataDirectory
    from mainspring.store.embedded.launch import Launch

RECOVERY_PATIENCE = 600.0  # after a crash the server first replays up to max_wal_size
ENDING_PATIENCE = 1.0
LAST_LINES = 15
LARGEST_LOG = 16 * 1024 * 1024

_children: dict[int, subprocess.Popen[bytes]] = {}


def start(directory: DataDirectory, binaries: Binaries, launch: Launch, *, lock: int) -> Postmaster:
    """Start the server and wait until it is ready. The caller holds `lock`; the server inherits it."""
    reap_children()
    _refuse_taken_port(launch.tcp_port)
    prepare_socket_directory(directory)
    forget_dead_postmaster(directory.postgresql)
    _drop_large_logs(directory)
    directory.write_file(directory.hba_file.name, HBA, mode=0o644)
    launch.remember_in(directory)
    child = _spawn(directory, binaries, launch, lock=lock)
    return _ready(directory, binaries, launch, child)


def reap_children() -> None:
    """Take note of servers we started that have ended, so that they do not linger as zombies."""
    for pid, child in list(_children.items()):
        if child.poll() is not None:
            _children.pop(pid, None)


def reap_child(pid: int) -> None:
    """Wait for a server that is ending, if it is our child: its memory and locks are gone a moment before it is."""
    if (child := _children.get(pid)) is not None:
        with suppress(subprocess.TimeoutExpired):
            child.wait(ENDING_PATIENCE)
    reap_children()


def _drop_large_logs(directory: DataDirectory) -> None:
    """The server empties a weekday's log only if it runs at that midnight; a short-lived one never does."""
    for log in directory.postgresql.glob("log/*.log"):
        if log.lstat().st_size > LARGEST_LOG:
            log.unlink()


def _spawn(directory: DataDirectory, binaries: Binaries, launch: Launch, *, lock: int) -> subprocess.Popen[bytes]:
    settings = [part for name, value in launch.settings.items() for part in ("-c", f"{name}={value}")]
    command: list[str | Path] = [binaries.postgres, "-D", directory.postgresql, *settings]
    log = directory.open_file(directory.start_log.name, os.O_TRUNC)
    try:
        child = start_as(directory.account, command, output=log, keep_open=[lock])
    finally:
        os.close(log)
    _children[child.pid] = child
    return child


def _ready(directory: DataDirectory, binaries: Binaries, launch: Launch, child: subprocess.Popen[bytes]) -> Postmaster:
    def settled() -> bool:
        return child.poll() is not None or ready_postmaster(directory.postgresql) is not None

    wait_until(settled, seconds=RECOVERY_PATIENCE)
    postmaster = ready_postmaster(directory.postgresql)
    if postmaster is None or postmaster.pid != child.pid:
        reap_children()
        raise _start_failed(directory, binaries, launch, status=child.returncode)
    return postmaster


def _refuse_taken_port(port: int | None) -> None:
    if port is None:
        return
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as PostgreSQL does
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise _port_taken(port) from error


def _port_taken(port: int) -> EmbeddedServerError:
    return EmbeddedServerError(
        f"Port {port} of 127.0.0.1 is in use by another program.",
        code="embedded-port-taken",
        hint="Choose another port, or none: without one the embedded PostgreSQL is reached by its socket.",
        port=port,
    )


def _start_failed(
    directory: DataDirectory, binaries: Binaries, launch: Launch, *, status: int | None
) -> EmbeddedServerError:
    said = _last_words(directory)
    if launch.tcp_port is not None and "Address already in use" in said:  # taken between our look and the start
        return _port_taken(launch.tcp_port)
    return EmbeddedServerError(
        f"PostgreSQL {binaries.version} did not start in {directory.path}: {_ending(status)}. Its last words:\n{said}",
        code="embedded-start-failed",
        hint=f"The whole log is in {directory.postgresql / 'log'} and {directory.start_log}.",
        path=str(directory.path),
        log=said,
    )


def _ending(status: int | None) -> str:
    if status is None:
        return f"it was not ready after {RECOVERY_PATIENCE:.0f} seconds"
    return f"it was killed by {signal.Signals(-status).name}" if status < 0 else "it gave up"


def _last_words(directory: DataDirectory) -> str:
    """The end of what the server wrote: to us until its log was open, to its log after that."""
    logs = sorted(directory.postgresql.glob("log/*.log"), key=lambda log: log.stat().st_mtime)
    lines: list[str] = []
    for log in (directory.start_log, *logs[-1:]):
        if log.exists():
            lines += log.read_text(errors="replace").splitlines()[-LAST_LINES:]
    return "\n".join(lines)


@atexit.register
def _disown_children() -> None:
    # A server that others still use outlives us on purpose; Popen would complain that nobody waited for it.
    reap_children()
    for child in _children.values():
        child.returncode = 0

"""The server's process: starting it as our own child, and finding it again.

`postmaster.pid` names a process; whether that is really the server of this directory is asked of the kernel.
"""

from __future__ import annotations

import atexit
import errno
import os
import signal
import socket
import struct
import subprocess
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded.accounts import start_as
from mainspring.store.embedded.cluster import HBA
from mainspring.store.embedded.directory import prepare_socket_directory
from mainspring.store.embedded.locks import wait_until

if TYPE_CHECKING:
    from mainspring.store.embedded.binaries import Binaries
    from mainspring.store.embedded.directory import DataDirectory
    from mainspring.store.embedded.settings import Launch

PROC = Path("/proc")
KNOCK_PATIENCE = 1.0
ASK_FOR_TLS = struct.pack("!ii", 8, 80877103)  # the one request that is answered before anything else is known
RECOVERY_PATIENCE = 600.0  # after a crash the server first replays up to max_wal_size
IMMEDIATE_SHUTDOWN_PATIENCE = 10.0
ENDING_PATIENCE = 1.0
LAST_LINES = 15
LARGEST_LOG = 16 * 1024 * 1024
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, kw_only=True)
class Postmaster:
    """The first process of a server. `status` is its own word: starting, ready, standby or stopping."""

    pid: int
    port: int
    socket_directory: Path
    status: str


def visible_postmaster(data: Path) -> Postmaster | None:
    """The living server of a data directory. Its file outlives a kill, and its process id may be reused."""
    postmaster = _read(data / "postmaster.pid")
    return postmaster if postmaster and is_postmaster_of(postmaster.pid, data) else None


def ready_postmaster(data: Path) -> Postmaster | None:
    """The server, if it is ready. One in another container is not visible, but answers at its socket."""
    postmaster = _read(data / "postmaster.pid")
    if postmaster is None or postmaster.status != "ready":
        return None
    return postmaster if is_postmaster_of(postmaster.pid, data) or _answers(postmaster) else None


def is_postmaster_of(pid: int, data: Path) -> bool:
    """Judged by the command line: more telling marks of a process are hidden from root in a container.

    A dead process that nobody waited for has none, and the server's children change theirs.
    """
    return f"\0-D\0{data}\0" in _command_line(pid)


def forget_dead_postmaster(data: Path) -> None:
    """Remove the file of a server that is known to be dead: PostgreSQL would believe a reused process id.

    A server someone started by hand without `-D` cannot be told apart and keeps it; PostgreSQL then refuses.
    """
    postmaster = _read(data / "postmaster.pid")
    line = _command_line(postmaster.pid) if postmaster else ""
    by_hand = Path(line.partition("\0")[0]).name == "postgres" and "\0-D\0" not in line
    if not by_hand:
        (data / "postmaster.pid").unlink(missing_ok=True)


def _answers(postmaster: Postmaster) -> bool:
    """Whether someone speaks there. A connection alone proves little: an orphan may hold the socket open."""
    with closing(socket.socket(socket.AF_UNIX)) as knock:
        knock.settimeout(KNOCK_PATIENCE)
        try:
            knock.connect(str(postmaster.socket_directory / f".s.PGSQL.{postmaster.port}"))
            knock.sendall(ASK_FOR_TLS)
            return knock.recv(1) in (b"N", b"S")
        except OSError:
            return False


def _read(file: Path) -> Postmaster | None:
    """The file is written line by line; until its last line is there the server is still starting."""
    try:
        lines = file.read_text(errors="surrogateescape").splitlines()
        pid, port, folder = int(lines[0]), int(lines[3]), Path(lines[4])
    except (OSError, ValueError, IndexError):
        return None
    status = lines[7].strip() if len(lines) > 7 else "starting"
    return Postmaster(pid=abs(pid), port=port, socket_directory=folder, status=status)


def _command_line(pid: int) -> str:
    """Arguments, each ended by NUL."""
    if (PROC / "self").exists():
        try:
            return (PROC / str(pid) / "cmdline").read_text(errors="surrogateescape")
        except OSError:
            return ""
    answer = subprocess.run(
        ["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip().replace(" -", "\0-").replace("\0-D ", "\0-D\0") + "\0"


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


def end_at_once(data: Path) -> None:
    """End the server of data that nobody needs any more. It takes its shared memory with it, unless it hangs."""
    for number in (signal.SIGQUIT, signal.SIGKILL):
        if (found := visible_postmaster(data)) is None:
            return
        with suppress(ProcessLookupError):
            os.kill(found.pid, number)
        wait_until(lambda: visible_postmaster(data) is None, seconds=IMMEDIATE_SHUTDOWN_PATIENCE)


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

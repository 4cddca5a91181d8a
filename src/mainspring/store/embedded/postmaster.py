"""What postmaster.pid says, and whether the process it names is really the server of this directory."""

from __future__ import annotations

import socket
import struct
import subprocess
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
KNOCK_PATIENCE = 1.0
ASK_FOR_TLS = struct.pack("!ii", 8, 80877103)  # the one request that is answered before anything else is known


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

"""PostgreSQL servers of a test's own, on loopback TCP: one alone, or a primary with its synchronous standby.

They are copies of a stopped server that was migrated once, so that each takes a fraction of a second to make. What the
standby receives goes through a proxy: cut it off, and every COMMIT of the primary waits; delay what it says, and every
COMMIT takes so long. Nothing here is durable, which a kill does not notice: what was written is the kernel's by then.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
from tests import waiting

from mainspring.store.database import Database
from mainspring.store.embedded.accounts import ENVIRONMENT, PRIVATE, account_for, run_as
from mainspring.store.embedded.binaries import find_binaries, reachable_binaries
from mainspring.store.embedded.postmaster import forget_dead_postmaster, visible_postmaster
from mainspring.store.migrate import migrate
from mainspring.worker.isolation.processes import die_with_parent

from .machinery import eventually, is_alive
from .proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

_WAITING = "from pg_stat_activity where wait_event = 'SyncRep' and application_name like $1"

IPC_RMID = 0
USER, DATABASE = "tester", "shop"
STANDBY = "standby"
NOBODY = "nobody"  # a standby that never comes
PORTS = range(
    20_000, 32_000
)  # below those that the kernel gives to clients, so that a stopped server finds its own free

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "dynamic_shared_memory_type": "mmap",  # in its data directory, with which it goes
    "max_connections": "100",
    "max_wal_size": "512MB",
    "wal_level": "replica",
    "wal_keep_size": "256MB",  # a standby that was away finds what it missed
    "wal_retrieve_retry_interval": "50ms",  # and looks for it soon
    "timezone": "UTC",
}


class Server:
    """One PostgreSQL: a data directory, a port, and the processes that run on it."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.port = _free_port()
        self._account = account_for(data)
        self._binaries = reachable_binaries(find_binaries(), self._account)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return url_of(self.port)

    # ── being there ─────────────────────────────────────────────────────────────────────────────────────────

    def set(self, **settings: str) -> None:
        """Settings from the next start or reload on."""
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    async def start(self) -> None:
        """Start it and wait until it lets people in. From the main thread: the server dies with the thread's end."""
        forget_dead_postmaster(self.data)
        command: list[str | Path] = [self._binaries.postgres, "-D", self.data, "-c", f"port={self.port}"]
        switches = self._account.switches
        with (self.data.parent / f"{self.data.name}.log").open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=ENVIRONMENT,
                cwd="/",
                umask=PRIVATE,
                start_new_session=True,
                user=self._account.uid if switches else None,
                group=self._account.gid if switches else None,
                extra_groups=[] if switches else None,
                preexec_fn=partial(die_with_parent, signal.SIGQUIT),  # whatever ends the tests ends their servers
            )
        assert await eventually(self._is_ready), f"PostgreSQL did not start; see {output.name}"

    async def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.data.parent / f"{self.data.name}.log").read_text()[-2000:]
        postmaster = visible_postmaster(self.data)
        return postmaster is not None and postmaster.status in ("ready", "standby")

    async def stop(self) -> None:
        """An orderly end: everyone is shown out, and what a connected standby lacks is sent to it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            await asyncio.to_thread(self._process.wait)
            self._process = None

    def kill(self) -> None:
        """SIGKILL to the whole server at once. Nothing is said to anybody any more."""
        if self._process is None:
            return
        self._stop_all()  # so that nobody is born or reacts meanwhile
        everyone = self._processes()
        _send(signal.SIGKILL, everyone)
        self._process.wait()
        self._process = None
        assert waiting.eventually(lambda: not any(map(is_alive, everyone)))
        self._remove_shared_memory()

    def _remove_shared_memory(self) -> None:
        """Who is killed leaves a little behind in the kernel, which outlives its data."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            segment = int((self.data / "postmaster.pid").read_text().splitlines()[6].split()[1])
            ctypes.CDLL(None).shmctl(segment, IPC_RMID, None)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all its processes: the kernel still accepts connections for it, and nobody says anything on them."""
        self._stop_all()
        try:
            yield
        finally:
            _send(signal.SIGCONT, self._processes())

    def _stop_all(self) -> None:
        _send(signal.SIGSTOP, self._processes()[:1])  # the postmaster first: then nobody is born whom we do not see
        _send(signal.SIGSTOP, self._processes())

    def _processes(self) -> list[int]:
        """The postmaster and its children."""
        if self._process is None:
            return []
        pid = self._process.pid
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    # ── being asked ─────────────────────────────────────────────────────────────────────────────────────────

    async def ask(self, query: str, *arguments: Any) -> Any:
        """One value, over a connection that nobody else has. A query that writes does not wait for a standby."""
        connection = await asyncpg.connect(
            self.url, server_settings={"search_path": "mainspring, public", "synchronous_commit": "local"}
        )
        try:
            return await connection.fetchval(query, *arguments)
        finally:
            await connection.close()

    async def promote(self) -> None:
        assert await self.ask("select pg_promote(true, 60)")

    async def waiting(self, part: str = "") -> int:
        """How many connections of ours with this in their name wait for a standby, in COMMIT."""
        return int(await self.ask(f"select count(*) {_WAITING}", f"mainspring {part}%"))

    async def connections(self, part: str = "") -> int:
        query = "select count(*) from pg_stat_activity where application_name like $1"
        return int(await self.ask(query, f"mainspring {part}%"))

    async def end_waiting(self, part: str = "") -> None:
        """End those: what they committed is there for everyone to see from now on, though no standby has it."""
        await self.ask(f"select count(pg_terminate_backend(pid, 10000)) {_WAITING}", f"mainspring {part}%")

    @contextlib.asynccontextmanager
    async def commits_held(self) -> AsyncIterator[None]:
        """Let every COMMIT wait for a standby that does not exist, until this is over; then they go on."""
        await self._await_standby(NOBODY)
        try:
            yield
        finally:
            await self._await_standby("")

    async def _await_standby(self, name: str) -> None:
        self.set(synchronous_standby_names=name)
        await self.ask("select pg_reload_conf()")
        assert await eventually(partial(self._is_holding_commits, bool(name)))

    async def _is_holding_commits(self, expected: bool) -> bool:
        """By trying: the server's processes read their settings when they get to it."""
        trial = await asyncpg.connect(self.url, server_settings={"application_name": "trial"})
        pid = trial.get_server_pid()
        committing = asyncio.ensure_future(trial.execute("select pg_logical_emit_message(true, 'trial', '')"))
        is_held = f"select exists (select {_WAITING} and pid = $2)"

        async def is_decided() -> bool:
            return committing.done() or await self.ask(is_held, "trial", pid)

        await waiting.until(is_decided)
        found = not committing.done()
        await self.ask("select pg_terminate_backend($1, 10000)", pid)
        await asyncio.gather(committing, return_exceptions=True)
        trial.terminate()
        return found is expected


class Replicas:
    """A primary whose COMMITs wait for its standby, and the line between the two."""

    def __init__(self, primary: Server, standby: Server, line: Proxy) -> None:
        self.primary = primary
        self.standby = standby
        self.line = line

    @property
    def url(self) -> str:
        """Both, the primary first."""
        return url_of(self.primary.port, self.standby.port)

    @contextlib.contextmanager
    def standby_away(self) -> Iterator[None]:
        """The standby receives nothing; COMMITs wait. Afterwards it goes on where it was."""
        self.line.close_down()
        try:
            yield
        finally:
            self.line.open_up()

    async def fail_over(self) -> None:
        """The primary dies, and the standby takes its place with what it has."""
        self.line.close_down()
        self.primary.kill()
        await self.standby.promote()

    async def in_step(self) -> bool:
        """Whether the standby confirms what the primary commits."""
        return bool(await self.primary.ask("select exists (select from pg_stat_replication where sync_state = 'sync')"))


def url_of(*ports: int) -> str:
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    wanted = "&target_session_attrs=read-write" if len(ports) > 1 else ""
    return f"postgresql://{USER}@{hosts}/{DATABASE}?sslmode=disable{wanted}"


# ── making them ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def make_template(folder: Path) -> None:
    """A server that was migrated, and stopped."""
    account = account_for(folder)
    binaries = reachable_binaries(find_binaries(), account)
    done = run_as(account, [binaries.initdb, "-D", folder / "template", "-U", USER, "--auth=trust", "--no-sync"])
    assert done.returncode == 0, done.stderr
    server = Server(folder / "template")
    server.set(**SETTINGS)
    await server.start()
    try:
        await _migrate(server)
    finally:
        await server.stop()


async def _migrate(server: Server) -> None:
    admin = await asyncpg.connect(url_of(server.port).replace(f"/{DATABASE}", "/postgres"))
    await admin.execute(f"create database {DATABASE}")
    await admin.close()
    connection = await Database(server.url).connect("test")
    await migrate(connection)
    await connection.close()


def make_folder(parent: Path) -> Path:
    """A folder for servers, which belongs to the account they run under."""
    folder = Path(tempfile.mkdtemp(prefix="servers-", dir=parent))
    folder.chmod(0o755)
    account = account_for(folder)
    os.chown(folder, account.uid, account.gid)
    return folder


@contextlib.asynccontextmanager
async def lone_server(template: Path, parent: Path, **settings: str) -> AsyncIterator[Server]:
    """A server without a standby, gone without a trace afterwards."""
    folder = make_folder(parent)
    server = _copied(template, folder / "primary")
    server.set(**settings)
    try:
        await server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.asynccontextmanager
async def replicated(template: Path, parent: Path) -> AsyncIterator[Replicas]:
    """A primary and its synchronous standby in step, gone without a trace afterwards."""
    wanted = {"synchronous_standby_names": STANDBY}
    async with lone_server(template, parent, **wanted) as primary, Proxy(primary.url) as line:
        standby = _copied(template, primary.data.with_name(STANDBY))
        (standby.data / "standby.signal").touch()
        os.chown(standby.data / "standby.signal", *_owner(standby.data))
        standby.set(primary_conninfo=f"host=127.0.0.1 port={line.port} user={USER} application_name={STANDBY}")
        try:
            await standby.start()
            replicas = Replicas(primary, standby, line)
            assert await eventually(replicas.in_step)
            yield replicas
        finally:
            standby.kill()


def _send(number: signal.Signals, pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _copied(template: Path, place: Path) -> Server:
    done = run_as(account_for(place.parent), ["cp", "-a", template, place])
    assert done.returncode == 0, done.stderr
    return Server(place)


def _owner(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_uid, status.st_gid


def _free_port() -> int:
    for port in random.sample(PORTS, len(PORTS)):
        with contextlib.closing(socket.socket()) as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")

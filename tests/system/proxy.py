"""A small TCP proxy in front of PostgreSQL that can cut, hold, delay and swallow, by the name of a connection."""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import parse_qs, urlsplit

_NAME = re.compile(rb"application_name\x00([^\x00]*)\x00")


class Mode(Enum):
    PASS = "pass"
    SWALLOW = "swallow"  # what the client says arrives; what the server answers does not
    HOLD = "hold"  # nothing arrives, nothing breaks: a half-open connection


COMMIT = b"COMMIT"
READY_FOR_QUERY = b"Z\x00\x00\x00\x05"


@dataclass(eq=False)
class Wire:
    """One proxied connection."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    mode: Mode = Mode.PASS
    name: str = ""
    cue: bytes = b""  # what the client has to say before `then` becomes the mode
    then: Mode = Mode.PASS
    swallowed: bytearray = field(default_factory=bytearray)
    _is_let_through: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.set_mode(self.mode)

    def set_mode(self, mode: Mode) -> None:
        self.mode = mode
        if mode is Mode.HOLD:
            self._is_let_through.clear()
        else:
            self._is_let_through.set()

    async def while_held(self) -> None:
        """Wait until nothing is held any longer."""
        await self._is_let_through.wait()

    def hear(self, data: bytes) -> None:
        if self.cue and self.cue in data:
            self.set_mode(self.then)
            self.cue = b""

    def cut(self) -> None:
        for side in (self.client, self.server):
            side.transport.abort()
        self.set_mode(Mode.PASS)  # whoever holds something for it need not wait any longer


class Proxy:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        self._socket = f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}" if "host" in query else None
        self._address = (parts.hostname, parts.port)
        self._database = parts.path
        self._user = parts.username
        self._listener: asyncio.Server | None = None
        self.wires: set[Wire] = set()
        self._relays: set[asyncio.Task[None]] = set()
        self.is_open = True
        self.refused = ""  # part of the name of connections that are not to be had
        self.default_mode = Mode.PASS
        self.silent: str | None = None  # part of the name of connections that are let in, and then hear nothing more
        self.first_commit: tuple[str, Mode] | None = None  # what becomes of the first COMMIT of the next so named
        self.delay = 0.0  # seconds by which what clients say arrives late, at least

    async def __aenter__(self) -> Proxy:
        self._listener = await asyncio.start_server(self._begin, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._listener is not None
        self._listener.close()
        self.open_up()
        self.is_open = False  # for those that are just being accepted
        self.cut()
        await asyncio.gather(*self._relays, return_exceptions=True)

    @property
    def port(self) -> int:
        assert self._listener is not None
        return int(self._listener.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"postgresql://{self._user}@127.0.0.1:{self.port}{self._database}?sslmode=disable"

    def named(self, part: str) -> list[Wire]:
        return [wire for wire in self.wires if part in wire.name]

    def cut(self, part: str = "") -> None:
        for wire in self.named(part):
            wire.cut()
            self.wires.discard(wire)

    def set_mode_at(self, cue: bytes, mode: Mode, part: str) -> None:
        """From the next thing the client says with these bytes in it. That nobody has this name is a mistake."""
        wires = self.named(part)
        assert wires, f"no connection is named {part!r}: {[wire.name for wire in self.wires]}"
        for wire in wires:
            wire.cue, wire.then = cue, mode

    async def is_losing(self, part: str) -> bool:
        """Whether an answer was swallowed, or a question is held."""
        return any(wire.swallowed or wire.mode is Mode.HOLD for wire in self.named(part))

    def close_down(self) -> None:
        """The server is away: connections break, and no new ones are to be had."""
        self.is_open = False
        self.cut()

    def hold_everything(self) -> None:
        """The network is away: connections stay and nothing gets through, new ones included."""
        self.default_mode = Mode.HOLD
        for wire in self.wires:
            wire.set_mode(Mode.HOLD)

    def open_up(self) -> None:
        self.is_open = True
        self.silent = None
        self.default_mode = Mode.PASS
        for wire in self.wires:
            wire.set_mode(Mode.PASS)
            wire.cue = b""

    def fall_silent(self, part: str) -> None:
        """These connections hear nothing more, and neither do those that follow them, once they were let in."""
        self.silent = part
        for wire in self.named(part):
            wire.set_mode(Mode.HOLD)

    def _prepare(self, wire: Wire) -> None:
        if self.first_commit is not None and self.first_commit[0] in wire.name:
            wire.cue, wire.then = COMMIT, self.first_commit[1]
            self.first_commit = None

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay = asyncio.ensure_future(self._accept(reader, writer))
        self._relays.add(relay)
        relay.add_done_callback(self._relays.discard)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_open:
            writer.transport.abort()
            return
        try:
            server_reader, server_writer = await self._reach_server()
        except OSError:
            writer.transport.abort()
            return
        if not self.is_open:  # by now
            writer.transport.abort()
            server_writer.transport.abort()
            return
        wire = Wire(writer, server_writer, mode=self.default_mode)
        self.wires.add(wire)
        try:
            await asyncio.gather(self._to_server(reader, wire), self._to_client(server_reader, wire))
        finally:
            self.wires.discard(wire)

    async def _reach_server(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._socket is not None:
            return await asyncio.open_unix_connection(self._socket)
        return await asyncio.open_connection(*self._address)

    async def _to_server(self, reader: asyncio.StreamReader, wire: Wire) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: uvloop, of a transport that was cut
            while data := await reader.read(65536):
                if not wire.name and (found := _NAME.search(data)):
                    wire.name = found[1].decode()
                    self._prepare(wire)
                    if self.refused and self.refused in wire.name:
                        wire.cut()
                        return
                wire.hear(data)
                await wire.while_held()
                if self.delay:
                    await asyncio.sleep(self.delay)
                wire.server.write(data)
                await wire.server.drain()
        wire.server.close()

    async def _to_client(self, reader: asyncio.StreamReader, wire: Wire) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: uvloop, of a transport that was cut
            while data := await reader.read(65536):
                await wire.while_held()
                if wire.mode is Mode.SWALLOW:
                    wire.swallowed += data
                    continue
                wire.client.write(data)
                await wire.client.drain()
                if self.silent is not None and self.silent in wire.name and READY_FOR_QUERY in data:
                    wire.set_mode(Mode.HOLD)
        wire.client.close()

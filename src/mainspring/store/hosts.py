"""The servers that a URL names: each gets a short time of its own, and the last good one is asked first.

With `load_balance_hosts=random`, as libpq has it, each connection begins at any of them: for the nodes of a Citus
cluster, all of which can be asked. One that was not there is asked last for a while.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, unquote

import asyncpg

from mainspring.errors import DatabaseUnreachable, MainspringError
from mainspring.store.connection import Connection
from mainspring.store.failures import translated, unreachable
from mainspring.store.urls import split_url, without_parameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CONNECT_SECONDS = 10.0  # where there is only one host to ask
BALANCE = "load_balance_hosts"
AWAY_SECONDS = 10.0  # so long, a host that could not be used is asked after the others
ROUNDS = (2.0, 6.0)  # where there are several: how long each of them has, the first time and the second


class StartupRefused(Exception):
    """Something between us and PostgreSQL, a pooler, takes no settings at the start of a connection."""


class Host(NamedTuple):
    name: str
    port: int | None

    def __str__(self) -> str:
        return self.name if self.port is None else f"{self.name}:{self.port}"


class Hosts:
    """Connects to whichever of the hosts of a URL can be used."""

    def __init__(self, url: str) -> None:
        query = parse_qs(split_url(url).query)
        self._url = without_parameter(url, BALANCE)
        self._hosts = hosts_of(url)
        self._is_balanced = query.get(BALANCE) == ["random"]
        self._has_said_which = "target_session_attrs" in query
        self._away: dict[Host, float] = {}  # when it could not be used

    async def connect(self, **settings: Any) -> Connection:
        if len(self._hosts) < 2:
            return await self._try(None, CONNECT_SECONDS, settings)
        if not self._has_said_which:
            settings["target_session_attrs"] = "read-write"  # of several servers, one takes writes
        failures: dict[Host, Exception] = {}
        for seconds in ROUNDS:
            for host in self._in_order():
                try:
                    connection = await self._try(host, seconds, settings)
                except MainspringError as error:
                    failures[host] = error
                    self._away[host] = asyncio.get_running_loop().time()
                    continue
                self._prefer(host)
                return connection
        raise _none_of(failures)

    def _in_order(self) -> list[Host]:
        if not self._is_balanced:
            return list(self._hosts)
        since = asyncio.get_running_loop().time() - AWAY_SECONDS
        shuffled = random.sample(self._hosts, len(self._hosts))
        return sorted(shuffled, key=lambda host: self._away.get(host, since) > since)

    async def _try(self, host: Host | None, seconds: float, settings: dict[str, Any]) -> Connection:
        where = {} if host is None else {"host": host.name, "port": host.port}
        asked = settings | where
        url = self._url if host is None else split_url(self._url).without_hosts()
        try:
            return await asyncpg.connect(url, timeout=seconds, connection_class=Connection, **asked)
        except asyncpg.ProtocolViolationError as error:
            if "startup parameter" in str(error):  # PgBouncer says so, in English only
                raise StartupRefused from error
            raise translated(error) from error
        except TimeoutError as error:
            raise unreachable(f"it did not answer within {seconds:g} s") from error
        except (asyncpg.InternalClientError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            raise translated(error) from error

    def _prefer(self, host: Host) -> None:
        self._away.pop(host, None)
        self._hosts.remove(host)
        self._hosts.insert(0, host)


def hosts_of(url: str) -> list[Host]:
    """The hosts a URL names, in its order: before the database's name, or as `host=` and `port=` after it."""
    parts = split_url(url)
    query = parse_qs(parts.query)
    if "host" in query:
        names = query["host"][0].split(",")
        ports = query.get("port", [""])[0].split(",")
        return [_host(name, port) for name, port in zip(names, _as_many(ports, names), strict=True)]
    return [_host(unquote(each)) for each in parts.hosts.split(",") if each]


def _host(text: str, port: str = "") -> Host:
    name, colon, own = text.rpartition(":")
    if not colon or "]" in own or text.startswith("/"):  # a name, an IPv6 address in brackets, a folder: no port
        name, own = text, port
    return Host(name.strip("[]"), _port(own))


def _port(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _as_many(ports: Sequence[str], names: Sequence[str]) -> Iterable[str]:
    """One port stands for all hosts."""
    return ports if len(ports) == len(names) else [ports[0]] * len(names)


def _none_of(failures: dict[Host, Exception]) -> MainspringError:
    kinds = {(type(error), getattr(error, "code", "")) for error in failures.values()}
    first = next(iter(failures.values()))
    if len(kinds) == 1 and isinstance(first, MainspringError) and not isinstance(first, DatabaseUnreachable):
        return first  # all say the same: a password, a database that is not there
    words = "; ".join(f"{host}: {getattr(error, 'message', error)}" for host, error in failures.items())
    return unreachable(f"none of {len(failures)} hosts can be used ({words.rstrip('.')})")

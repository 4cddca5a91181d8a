"""Where the tests on a Citus cluster find it: MAINSPRING_CITUS_URL names a database on a coordinator.

The schema `mainspring` in it is dropped and made anew, once, and what moves in it is emptied for each life.
MAINSPRING_CITUS_NODE is the address (host:port) of one of its worker nodes, which MAINSPRING_CITUS_STOP and
MAINSPRING_CITUS_START, commands, stop at once and start again: some tests want a node to be down.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from mainspring.store.database import Database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from mainspring.store.connection import Connection

CITUS_URL = os.environ.get("MAINSPRING_CITUS_URL", "")
NODE, STOP, START = (os.environ.get(f"MAINSPRING_CITUS_{name}", "") for name in ("NODE", "STOP", "START"))

on_citus = [
    pytest.mark.citus,
    pytest.mark.skipif(not CITUS_URL, reason="MAINSPRING_CITUS_URL names no Citus coordinator"),
    pytest.mark.xdist_group("citus"),
]


def url_of_node(node: Mapping[str, Any]) -> str:
    """The same database on another node, of which `nodename` and `nodeport` are known."""
    parts = urlsplit(CITUS_URL)
    login = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return urlunsplit(parts._replace(netloc=f"{login}{node['nodename']}:{node['nodeport']}"))


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    database = Database(url)
    connection = await database.connect("test")
    try:
        yield connection
    finally:
        await connection.close()
        await database.close()

"""A private PostgreSQL of our own: made, started, shared and stopped without anyone configuring anything.

One data directory, at most one server, any number of users on the machine:

    <data directory>/
        mainspring.marker   says that the directory is ours; nothing is touched in a directory without it
        change.lock         exclusive, held while someone starts or stops the server: the two never race
        users.lock          shared, held by every user of the server; the last one to leave stops it
        server.lock         exclusive, held by PostgreSQL itself through an inherited descriptor
        postgresql/         PostgreSQL's own data directory, owned by the account the server runs under
        staging/            a data directory in the making; renamed to postgresql/ when it is complete
        socket/             where the server listens (in /tmp when this path is too long for a socket)
        pg_hba.conf, started.json, start.log, password

What is trusted is the kernel: all three locks are `flock`s, which vanish with their last holder, however it
died. `server.lock` is the strongest of them. The server and all its children hold it, so "free" means that no
process of any former server lives, whatever postmaster.pid says about a process id that may long belong to
someone else, and whichever container looks. Only then is a stale postmaster.pid removed and a server started.

A server whose starter was killed goes on; the next user finds it ready and adopts it. A server that was
killed is started again by whichever user calls `ensure_running()` first.

    with EmbeddedServer.acquire(default_data_directory()) as server:
        connection = await asyncpg.connect(server.dsn)
"""

from mainspring.store.embedded.directory import DIRECTORY_VARIABLE, default_data_directory
from mainspring.store.embedded.server import EmbeddedServer

__all__ = ["DIRECTORY_VARIABLE", "EmbeddedServer", "default_data_directory"]

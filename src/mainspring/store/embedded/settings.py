"""What the server is told on its command line, anew at each start, so that an upgrade of ours takes effect.

The command line and not a file: it wins over ALTER SYSTEM, so nobody turns durability off by accident, and it
can neither be half written nor misquoted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded.memory import usable_memory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MIB = 1024 * 1024
PRIVATE_PORT = 5432  # only names the socket file, unless TCP is asked for

DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
# These are how we find, share and protect the server; changing them from outside would break that.
RESERVED = frozenset(
    {
        "cluster_name",
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "listen_addresses",
        "port",
        "unix_socket_directories",
        "unix_socket_group",
        "unix_socket_permissions",
    }
)

FIXED = {
    "cluster_name": "mainspring",
    "unix_socket_permissions": "0700",
    "password_encryption": "scram-sha-256",
    "search_path": "public",  # our role has our schema's name: by "$user" our tables would hide an application's own
    "max_connections": "200",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "wal_compression": "off",  # the wheel has no lz4, and pglz costs more than it saves
    "autovacuum_naptime": "5s",  # a queue makes dead rows by the thousand; the default minute is too long
    "track_wal_io_timing": "off",
    "jit": "off",
    "huge_pages": "try",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "logging_collector": "on",
    "log_directory": "log",
    "log_filename": "server-%a.log",  # one per weekday, overwritten a week later: the bound on what we keep
    "log_file_mode": "0600",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    "log_checkpoints": "off",
}


def server_settings(
    *,
    hba_file: Path,
    socket_directory: Path,
    tcp_port: int | None = None,
    overrides: Mapping[str, str] | None = None,
    unsafe_for_tests: bool = False,
) -> dict[str, str]:
    """All settings of one start: ours, fitted to the machine, then what the caller asked for."""
    asked = {name.strip().lower(): str(value) for name, value in (overrides or {}).items()}
    _refuse_reserved(asked)
    if not unsafe_for_tests:
        _refuse_weakened(asked)
    durability = dict.fromkeys(DURABLE, "off") if unsafe_for_tests else DURABLE
    places = {"hba_file": str(hba_file), "unix_socket_directories": str(socket_directory)}
    return {**FIXED, **_fitted(usable_memory()), **durability, **_network(tcp_port), **places, **asked}


def weakened(settings: Mapping[str, str]) -> list[str]:
    """The settings among these under which an accepted run could be lost."""
    yes = ("on", "true", "yes", "1")
    return [name for name in DURABLE if settings.get(name, "on").strip().lower() not in yes]


def _fitted(memory: int) -> dict[str, str]:
    """Sizes in proportion to memory. Ours is one guest of the machine among others, so they stay modest."""
    return {
        "shared_buffers": _mebibytes(memory // 8, least=32, most=1024),
        "effective_cache_size": _mebibytes(memory // 2, least=64, most=1024 * 1024),
        "maintenance_work_mem": _mebibytes(memory // 32, least=16, most=512),
        "work_mem": _mebibytes(memory // 1024, least=4, most=32),
    }


def _mebibytes(size: int, *, least: int, most: int) -> str:
    return f"{min(max(size // MIB, least), most)}MB"


def _network(tcp_port: int | None) -> dict[str, str]:
    if tcp_port is None:
        return {"listen_addresses": "", "port": str(PRIVATE_PORT)}
    if not 1 <= tcp_port <= 65535:
        raise EmbeddedServerError(
            f"{tcp_port} is no TCP port.", code="embedded-port-invalid", hint="Give a number from 1 to 65535."
        )
    return {"listen_addresses": "127.0.0.1", "port": str(tcp_port)}


def _refuse_reserved(asked: Mapping[str, str]) -> None:
    for name in sorted(RESERVED & asked.keys()):
        raise EmbeddedServerError(
            f"The setting {name!r} of the embedded PostgreSQL is chosen by Mainspring.",
            code="embedded-setting-reserved",
            hint="For TCP, give a port; for full control, run a PostgreSQL of your own and give its URL.",
            setting=name,
        )


def _refuse_weakened(asked: Mapping[str, str]) -> None:
    for name in weakened(asked):
        raise EmbeddedServerError(
            f"The setting {name}={asked[name]} would lose accepted runs in a power cut.",
            code="embedded-setting-not-durable",
            hint="Leave it on. Only throw-away data may pass unsafe_for_tests=True.",
            setting=name,
            value=asked[name],
        )

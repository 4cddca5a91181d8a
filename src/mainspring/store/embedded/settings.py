"""What the server is told on its command line, anew at each start, so that an upgrade of ours takes effect.

The command line and not a file: it wins over ALTER SYSTEM, so nobody turns durability off by accident, and it
can neither be half written nor misquoted. How a server was started is remembered for those who join later.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mainspring.errors import EmbeddedServerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mainspring.store.embedded.directory import DataDirectory

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")
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


def usable_memory() -> int:
    """Bytes; the smallest of the machine's memory and the limits of all control groups around us."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_cgroup_limits()])


def _cgroup_limits() -> Iterator[int]:
    for file in _limit_files():
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        if text.isdigit():  # "max" means no limit
            yield int(text)


def _limit_files() -> Iterator[Path]:
    """Version 2 has one tree, version 1 one for memory. A limit of any ancestor binds."""
    for controllers, path in _own_cgroups():
        if controllers == "":
            yield from _up_from(CGROUPS, path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _up_from(CGROUPS / "memory", path, "memory.limit_in_bytes")


def _own_cgroups() -> Iterator[tuple[str, PurePosixPath]]:
    try:
        lines = OWN_CGROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        yield controllers, PurePosixPath(path.lstrip("/"))


def _up_from(tree: Path, path: PurePosixPath, name: str) -> Iterator[Path]:
    for folder in (path, *path.parents):
        yield tree / folder / name


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


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Everything that makes one start different from another."""

    folder: str
    version: str
    settings: dict[str, str]

    @property
    def tcp_port(self) -> int | None:
        return int(self.settings["port"]) if self.settings["listen_addresses"] else None

    @property
    def durable(self) -> bool:
        return not weakened(self.settings)

    def remember_in(self, directory: DataDirectory) -> None:
        directory.write_file(directory.started.name, json.dumps(asdict(self), indent=2) + "\n")


def remembered_launch(directory: DataDirectory) -> Launch | None:
    """How the server of this directory was last started, as far as it can be read."""
    try:
        launch = Launch(**json.loads(directory.started.read_text()))
        return launch if launch.settings["port"] and "listen_addresses" in launch.settings else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def refuse_unmet_wishes(wanted: Launch, running: Launch) -> None:
    """A server others use is not restarted; what it cannot give a newcomer is said, not dropped."""
    if wanted.tcp_port not in (None, running.tcp_port):
        raise _differs(f"listens on {_place(running)}, not on TCP port {wanted.tcp_port}")
    if wanted.durable and not running.durable:
        raise _differs("was started with unsafe_for_tests, so it may lose accepted runs")


def _place(launch: Launch) -> str:
    return "no TCP port" if launch.tcp_port is None else f"TCP port {launch.tcp_port}"


def _differs(how: str) -> EmbeddedServerError:
    return EmbeddedServerError(
        f"The embedded PostgreSQL already runs for other processes and {how}.",
        code="embedded-settings-differ",
        hint="Stop the processes that use this data directory, or ask for what they asked for.",
    )

"""How a server is started, with which programs and settings; remembered for those who join later."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded.settings import weakened

if TYPE_CHECKING:
    from mainspring.store.embedded.directory import DataDirectory


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

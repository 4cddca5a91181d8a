"""What takes part in the comparison: a library, pinned, with the commands that make it submit and work."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAMS = "benchmarks.peers.programs"


class Keeps(StrEnum):
    """Where a peer keeps its jobs, and how durably."""

    POSTGRESQL = "PostgreSQL, fsync at commit"
    VALKEY = "Valkey, fsync every second"


class PeerFailed(Exception):
    """A peer could not be installed, or did not do its work; it is left out of the comparison, saying why."""


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Commands run in the peer's own environment; the names of their programs are found there first."""

    name: str
    title: str
    keeps: Keeps
    work: tuple[str, ...]  # the command that starts worker processes …
    copies: int = 1  # … and how often it is started, when it makes only one process
    remaining: tuple[str, ...]  # what the peer's own books call unfinished: one SQL query, or commands to Valkey
    delivery: str  # what becomes of a job whose worker dies
    afterwards: str = "nothing"  # what is known of a job once it has succeeded
    requirements: tuple[str, ...] = ()  # the first is the library itself; none means our own environment
    packages: tuple[str, ...] = ()  # from npm
    install: tuple[str, ...] = ()  # the command that makes its tables
    submit: tuple[str, ...] = ()  # the command that submits, unless it is our program around `<name>_jobs`
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        pins = self.packages or self.requirements
        return pins[0].rpartition("@" if self.packages else "==")[2] if pins else version(self.name)

    def submitting(self, count: int, warm_up: int) -> tuple[str, ...]:
        program = self.submit or ("python", "-m", f"{PROGRAMS}.submit", f"{self.name}_jobs")
        return (*program, str(count), str(warm_up))

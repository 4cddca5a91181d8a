"""What doctor says about one thing it looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mainspring.clock import Clock
    from mainspring.store.connection import Connection


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found, and what to do if it is not well."""

    check: str
    level: Level
    says: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What the checks look at."""

    connection: Connection
    clock: Clock
    settings: dict[str, Any]
    lanes: int  # 0 while there is no schema that serves this program


def ok(check: str, says: str) -> Finding:
    return Finding(check=check, level=Level.OK, says=says)


def warning(check: str, says: str, remedy: str) -> Finding:
    return Finding(check=check, level=Level.WARNING, says=says, remedy=remedy)


def problem(check: str, says: str, remedy: str) -> Finding:
    return Finding(check=check, level=Level.PROBLEM, says=says, remedy=remedy)

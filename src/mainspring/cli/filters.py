"""The options that choose runs, shared by all commands that list them or act on many of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Group, Parameter

from mainspring.cli.command import Flag, Repeatable
from mainspring.cli.parsing import parse_moment
from mainspring.model.filter import RunFilter, run_filter
from mainspring.model.lifecycle import State

CHOICE = Group("Which runs", sort_key=0)


@Parameter(name="*", group=CHOICE)
@dataclass(frozen=True)
class DeadFilters:
    """Which dead runs are meant: their state is no choice."""

    job: Annotated[tuple[str, ...], Repeatable, Parameter(help="Of this job; may be repeated.")] = ()
    queue: Annotated[tuple[str, ...], Repeatable, Parameter(help="In this queue; may be repeated.")] = ()
    tag: Annotated[tuple[str, ...], Repeatable, Parameter(help="With this tag; repeated: with all of them.")] = ()
    since: Annotated[
        str | None, Parameter(help="Ended, or else submitted, since then: 2h (ago), or 2026-12-24T18:00Z.")
    ] = None
    until: Annotated[str | None, Parameter(help="… and before then.")] = None
    failed: Annotated[bool, Flag, Parameter(help="With a failed attempt.")] = False
    error: Annotated[str | None, Parameter(help="With this text in the error of a failed attempt.")] = None

    @property
    def is_empty(self) -> bool:
        return self == type(self)()

    def wanted(self) -> RunFilter:
        return self._in(State.DEAD)

    def _in(self, *states: State | str) -> RunFilter:
        now = datetime.now(UTC)
        return run_filter(
            job=self.job,
            queue=self.queue,
            state=states,
            tags=self.tag,
            since=parse_moment(self.since, "since", now),
            until=parse_moment(self.until, "until", now),
            failed=self.failed,
            error=self.error,
        )


@Parameter(name="*", group=CHOICE)
@dataclass(frozen=True)
class Filters(DeadFilters):
    """Which runs are meant."""

    state: Annotated[tuple[str, ...], Repeatable, Parameter(help="In this state; may be repeated.")] = ()

    def wanted(self) -> RunFilter:
        return self._in(*self.state)

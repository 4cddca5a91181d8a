"""Many runs: the options that choose them, and acts on them: count, ask, write the operation down, work it off."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from mainspring.cli.command import Flag, Repeatable
from mainspring.cli.parsing import parse_moment
from mainspring.control.operations import aimed
from mainspring.errors import InvalidInput
from mainspring.model.filter import RunFilter, run_filter
from mainspring.model.lifecycle import State
from mainspring.model.operation import OperationKind

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from mainspring.app.mainspring import Mainspring
    from mainspring.cli.command import Invocation
    from mainspring.model.operation import Operation


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

    def wanted(self, now: datetime) -> RunFilter:
        return self._in(now, State.DEAD)

    def _in(self, now: datetime, *states: State | str) -> RunFilter:
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

    def wanted(self, now: datetime) -> RunFilter:
        return self._in(now, *self.state)


DONE = {
    OperationKind.CANCEL: "cancelled",
    OperationKind.CHANGE: "changed",
    OperationKind.REQUEUE: "requeued",
    OperationKind.PURGE: "purged",
    OperationKind.RERUN: "run again",
    OperationKind.BACKFILL: "backfilled",
}


@Parameter(name="*", group=Group("Many runs", sort_key=1))
@dataclass(frozen=True)
class Many:
    """How to go about many runs."""

    all: Annotated[bool, Flag, Parameter(help="All there are; needed if nothing else says which.")] = False
    dry_run: Annotated[bool, Flag, Parameter(help="Only count them.")] = False
    yes: Annotated[bool, Flag, Parameter(help="Do not ask.")] = False
    reason: Annotated[str, Parameter(help="Why; kept with each run and in the audit.")] = ""


def check_choice(run_ids: tuple[str, ...], filters: DeadFilters, many: Many) -> None:
    """Runs are chosen by their ids or by a filter; by neither is a slip, unless it is said to be meant."""
    if run_ids and not (filters.is_empty and not many.all):
        raise InvalidInput(
            "Both ids and a filter were given.", code="ids-and-filter", hint="Give one of them.", field="id"
        )
    if run_ids and many.dry_run:
        raise InvalidInput(
            "--dry-run counts the runs that a filter chooses, and runs were named by their ids.",
            code="dry-run-of-ids",
            hint="Leave out --dry-run to act on them, or look at one: mainspring run show ID",
            field="dry_run",
        )
    if not run_ids and filters.is_empty and not many.all:
        raise InvalidInput(
            "No run was named.",
            code="no-runs-named",
            hint="Give ids, or a filter such as --job; or --all, if all are meant.",
            field="id",
        )


def check_arguments(run_ids: tuple[str, ...], *given: object) -> None:
    """New arguments are for one run: what fits one handler's call hardly fits all of them."""
    if len(run_ids) != 1 and any(given):
        raise InvalidInput(
            "New arguments are for one run.",
            code="arguments-for-many",
            hint="Name the runs one by one, each with its arguments.",
            field="arguments",
        )


async def operate(
    invocation: Invocation, client: Mainspring, kind: OperationKind, filters: DeadFilters, many: Many, **change: Any
) -> int:
    """Do it to all runs that match; answers with the exit code."""
    wanted = aimed(kind, filters.wanted(invocation.now))
    count = await client.runs.count(wanted)
    if many.dry_run or (count.number == 0 and count.is_exact):
        _print_count(invocation, count.number, is_exact=count.is_exact)
        return 0
    if not many.yes:
        confirm(invocation, f"{kind.capitalize()} {count} run{'' if str(count) == '1' else 's'}?")
    operation = await client.operations.start(kind, wanted, reason=many.reason, **change)
    invocation.say(f"operation {operation.id}; if it is cut off: mainspring operation resume {operation.id}")
    return await work_off(invocation, client, operation.id)


async def work_off(invocation: Invocation, client: Mainspring, operation_id: UUID | str) -> int:
    """Work an operation off and show how far it is; answers with the exit code."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    is_shown = sys.stderr.isatty() and not invocation.wants_json
    operation = await client.operations.find(operation_id)
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not is_shown) as progress:
        task = progress.add_task(operation.kind.value, total=operation.expected)
        async for operation in client.operations.work(operation_id):
            progress.update(task, completed=operation.done + operation.skipped)
    _print_end(invocation, operation)
    return 0


def _print_count(invocation: Invocation, number: int, *, is_exact: bool) -> None:
    if invocation.wants_json:
        invocation.print_json({"runs": number, "is_exact": is_exact})
    else:
        invocation.print(f"{'' if is_exact else 'more than '}{number:,} run{'' if number == 1 and is_exact else 's'}")


def _print_end(invocation: Invocation, operation: Operation) -> None:
    if invocation.wants_json:
        invocation.print_json(operation)
        return
    skipped = f"; {operation.skipped:,} had moved on and were skipped" if operation.skipped else ""
    invocation.print(f"{operation.done:,} {DONE[operation.kind]}{skipped}")


def confirm(invocation: Invocation, question: str, hint: str = "Say --yes, or --dry-run to count only.") -> None:
    """Go on only if somebody says yes."""
    if invocation.wants_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput(f"{question} There is nobody to ask.", code="not-confirmed", hint=hint)
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidInput("Nothing was done.", code="not-confirmed")

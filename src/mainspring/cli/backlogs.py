"""`mainspring backlog`: how many runs may wait for their first start, and what happens to what comes too much."""

from typing import Annotated, Literal

from cyclopts import Parameter
from msgspec import to_builtins
from rich.text import Text

from mainspring.cli.command import Invocation, command
from mainspring.cli.rules import AllRuns, Job, Key, Queue, check_whose, print_removed, set_by, whose, why_set
from mainspring.cli.tables import Column, fitted
from mainspring.cli.text import safe
from mainspring.model.backlog import NEAR, BacklogStatus, BacklogValue, WhenFull

COLUMNS = (
    Column("backlog", least=16),
    Column("by", least=8),
    Column("at most", is_number=True),
    Column("when full"),
    Column("waiting", is_number=True),
    Column("set by", leave_out=1),
    Column("reason", leave_out=2),
)
VALUE_COLUMNS = (Column("value", least=16), Column("waiting", is_number=True), Column("oldest", leave_out=1))
MEANINGS = {
    WhenFull.REFUSE: "what comes too much is refused",
    WhenFull.DROP_OLDEST: "then the run that waits longest is dropped",
    WhenFull.REPLACE: "then the run that was accepted last is replaced",
}


@command("list")
async def list_backlogs(*, invocation: Invocation) -> None:
    """List backlog caps: what they say, how many runs wait.

    Examples:
      mainspring backlog list
      mainspring backlog list -o json
    """
    async with invocation.client() as client:
        caps = await client.backlogs.list()
    if invocation.wants_json:
        invocation.print_json({"backlogs": to_builtins(caps)})
    elif caps:
        invocation.print_lines(fitted(COLUMNS, [_row(each) for each in caps], invocation.room))
    else:
        invocation.print("No backlog caps. Set one: mainspring backlog set 1000 --job NAME")


@command("show")
async def show(
    *, job: Job = None, queue: Queue = None, all_runs: AllRuns = False, key: Key = None, invocation: Invocation
) -> None:
    """Show a backlog cap: how many runs wait for each value of its key.

    Example:
      mainspring backlog show --job send --key customer
    """
    check_whose(job, queue, all_runs=all_runs)
    async with invocation.client() as client:
        cap, values = await client.backlogs.show(job=job, queue=queue, key=key)
    if invocation.wants_json:
        invocation.print_json({"backlog": to_builtins(cap), "values": to_builtins(values)})
        return
    invocation.print(_sentence(cap))
    if values:
        invocation.print_lines(fitted(VALUE_COLUMNS, [_value_row(each, cap) for each in values], invocation.room))


@command("set")
async def set_backlog(
    most: Annotated[int, Parameter(help="At most so many wait.")],
    /,
    *,
    job: Job = None,
    queue: Queue = None,
    all_runs: AllRuns = False,
    key: Key = None,
    when_full: Annotated[
        Literal["refuse", "drop_oldest", "replace"],
        Parameter(help="What comes too much is refused, or takes the place of the oldest or of the last run."),
    ] = "refuse",
    reason: Annotated[str, Parameter(help="Why; kept in the audit.")] = "",
    invocation: Invocation,
) -> None:
    """Let at most so many runs wait for their first start.

    In force within a second, for what is submitted from then on.

    Examples:
      mainspring backlog set 1000 --job send
      mainspring backlog set 100 --job send --key customer --when-full drop_oldest
      mainspring backlog set 50000 --queue mail --reason "the server is slow today"
      mainspring backlog set 1000000 --all-runs
    """
    check_whose(job, queue, all_runs=all_runs)
    async with invocation.client() as client:
        cap = await client.backlogs.set(
            most, job=job, queue=queue, key=key, when_full=WhenFull(when_full), reason=reason
        )
    if invocation.wants_json:
        invocation.print_json({"backlog": to_builtins(cap)})
    else:
        invocation.print(_sentence(cap))


@command("remove")
async def remove(
    *,
    job: Job = None,
    queue: Queue = None,
    all_runs: AllRuns = False,
    key: Key = None,
    reason: Annotated[str, Parameter(help="Why; kept in the audit.")] = "",
    invocation: Invocation,
) -> None:
    """Remove a backlog cap.

    Example:
      mainspring backlog remove --job send --key customer
    """
    check_whose(job, queue, all_runs=all_runs)
    async with invocation.client() as client:
        is_gone = await client.backlogs.remove(job=job, queue=queue, key=key, reason=reason)
    print_removed(invocation, is_gone=is_gone)


def _sentence(cap: BacklogStatus) -> str:
    by = f" for each value of {safe(cap.key)}" if cap.key else ""
    return f"{whose(cap)}: at most {cap.most:,} wait{by}, {MEANINGS[cap.when_full]}; {_waiting(cap)} wait"


def _waiting(cap: BacklogStatus) -> str:
    return f"{cap.waiting:,}" if cap.counts_are_exact else f"at least {cap.waiting:,}"


def _row(cap: BacklogStatus) -> list[Text]:
    is_near = cap.key is None and cap.waiting > NEAR * cap.most
    return [
        Text(whose(cap)),
        Text(safe(cap.key or "–")),
        Text(f"{cap.most:,}"),
        Text(cap.when_full.value),
        Text(("" if cap.counts_are_exact else "≥ ") + f"{cap.waiting:,}", style="yellow" if is_near else ""),
        set_by(cap),
        why_set(cap),
    ]


def _value_row(value: BacklogValue, cap: BacklogStatus) -> list[Text]:
    is_near = value.waiting > NEAR * cap.most
    return [
        Text(safe(value.value or "–")),
        Text(f"{value.waiting:,}", style="yellow" if is_near else ""),
        Text(str(value.oldest)),
    ]

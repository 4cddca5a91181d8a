"""`mainspring limit`: how many runs may execute at once or start in a while; who holds what, and who waits."""

from collections.abc import Sequence
from typing import Annotated, Literal

from cyclopts import Parameter
from msgspec import to_builtins
from rich.text import Text

from mainspring.cli.command import Invocation, command
from mainspring.cli.rules import AllRuns, Job, Key, Queue, check_whose, print_removed, set_by, whose, why_set
from mainspring.cli.tables import Column, fitted
from mainspring.cli.text import safe
from mainspring.model.concurrency import GateStatus, LimitStatus, OnDead, Order
from mainspring.model.rate import Rate, rate_text

COLUMNS = (
    Column("limit", least=16),
    Column("by", least=8),
    Column("at once", is_number=True),
    Column("starts", is_number=True),
    Column("order"),
    Column("holding", is_number=True),
    Column("waiting", is_number=True),
    Column("set by", leave_out=1),
    Column("reason", leave_out=2),
)
GATE_COLUMNS = (
    Column("value", least=16),
    Column("holding", is_number=True),
    Column("waiting", is_number=True),
    Column("held by", leave_out=2),
    Column("next", leave_out=1),
)


@command("list")
async def list_limits(*, invocation: Invocation) -> None:
    """List limits: what they say, how many runs hold a slot, how many wait.

    Examples:
      mainspring limit list
      mainspring limit list -o json
    """
    async with invocation.client() as client:
        limits = await client.limits.list()
    if invocation.wants_json:
        invocation.print_json({"limits": to_builtins(limits)})
    elif limits:
        invocation.print_lines(fitted(COLUMNS, [_row(each) for each in limits], invocation.room))
    else:
        invocation.print("No limits. Set one: mainspring limit set 3 --job NAME")


@command("show")
async def show(
    *, job: Job = None, queue: Queue = None, all_runs: AllRuns = False, key: Key = None, invocation: Invocation
) -> None:
    """Show a limit: who holds its slots and who is next, for each value of its key.

    Example:
      mainspring limit show --job send --key customer
    """
    check_whose(job, queue, all_runs=all_runs)
    async with invocation.client() as client:
        limit, gates = await client.limits.show(job=job, queue=queue, key=key)
    if invocation.wants_json:
        invocation.print_json({"limit": to_builtins(limit), "values": to_builtins(gates)})
        return
    invocation.print(_sentence(limit))
    invocation.print_lines(fitted(GATE_COLUMNS, [_gate_row(each) for each in gates], invocation.room))


@command("set")
async def set_limit(
    most: Annotated[int | None, Parameter(help="At most so many at once.")] = None,
    /,
    *,
    job: Job = None,
    queue: Queue = None,
    all_runs: AllRuns = False,
    key: Key = None,
    order: Annotated[Literal["priority", "strict"], Parameter(help="Strict: in the order of acceptance.")] = "priority",
    on_dead: Annotated[
        Literal["continue", "halt"], Parameter(help="With strict order: whether a dead letter stops those behind it.")
    ] = "continue",
    rate: Annotated[str | None, Parameter(help="So many starts: 100/s, 30/minute, 5/hour.")] = None,
    burst: Annotated[int | None, Parameter(help="With a rate: so many at once after a pause, 1 unless told.")] = None,
    share: Annotated[
        str | None,
        Parameter(help="Whose values take turns at this limit, or without a number and a rate for the workers."),
    ] = None,
    reason: Annotated[str, Parameter(help="Why; kept in the audit.")] = "",
    invocation: Invocation,
) -> None:
    """Let at most so many runs execute at once, or start in a while, or customers take turns.

    In force within a second, also for what waits already; what runs goes on.

    Examples:
      mainspring limit set 3 --job send
      mainspring limit set 1 --job send --key customer --order strict
      mainspring limit set 50 --queue mail --reason "the server is small"
      mainspring limit set --job send --rate 100/s --burst 20
      mainspring limit set --queue mail --share customer
      mainspring limit set 200 --all-runs --reason "the database is small"
    """
    check_whose(job, queue, all_runs=all_runs)
    async with invocation.client() as client:
        limit = await client.limits.set(
            most,
            job=job,
            queue=queue,
            key=key,
            order=Order(order),
            on_dead=OnDead(on_dead),
            rate=rate,
            burst=burst,
            share=share,
            reason=reason,
        )
    if invocation.wants_json:
        invocation.print_json({"limit": to_builtins(limit)})
    else:
        invocation.print(_sentence(limit))


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
    """Remove a limit. Whoever waits for it goes on.

    Example:
      mainspring limit remove --job send --key customer
    """
    check_whose(job, queue, all_runs=all_runs)
    async with invocation.client() as client:
        is_gone = await client.limits.remove(job=job, queue=queue, key=key, reason=reason)
    print_removed(invocation, is_gone=is_gone)


def _sentence(limit: LimitStatus) -> str:
    by = f" for each value of {safe(limit.key)}" if limit.key else ""
    order = ", in the order of acceptance" if limit.order is Order.STRICT else ""
    halts = ", stopping behind dead letters" if limit.on_dead is OnDead.HALT else ""
    share = f", in turns between values of {safe(limit.share)}" if limit.share else ""
    return f"{whose(limit)}: {_how_many(limit)}{by}{order}{halts}{share}; {_count(limit)}"


def _how_many(limit: LimitStatus) -> str:
    at_once = [] if limit.most is None else [f"{limit.most:,} at once"]
    told = " and ".join([*at_once, *([] if limit.rate is None else [f"{_rate(limit)} started"])])
    return f"at most {told}" if told else "as many as workers take"


def _rate(limit: LimitStatus) -> str:
    if limit.rate is None:
        return "–"
    return rate_text(Rate(limit.rate, limit.burst or 1)) + (f" (+{limit.burst})" if limit.burst != 1 else "")


def _count(limit: LimitStatus) -> str:
    more = "" if limit.counts_are_exact else "at least "
    return f"{more}{limit.holding:,} hold a slot, {more}{limit.waiting:,} wait"


def _row(limit: LimitStatus) -> list[Text]:
    more = "" if limit.counts_are_exact else "≥ "
    return [
        Text(whose(limit)),
        Text(safe(limit.key or (f"share {limit.share}" if limit.share else "–"))),
        Text("–" if limit.most is None else f"{limit.most:,}"),
        Text(_rate(limit)),
        Text(limit.order.value),
        Text(f"{more}{limit.holding:,}"),
        Text(f"{more}{limit.waiting:,}", style="yellow" if limit.waiting else ""),
        set_by(limit),
        why_set(limit),
    ]


def _gate_row(gate: GateStatus) -> list[Text]:
    return [
        Text(safe(gate.value or "–")),
        Text(f"{len(gate.holders):,}"),
        Text(f"{gate.waiting:,}", style="yellow" if gate.waiting else ""),
        Text(_some(gate.holders)),
        Text("–" if gate.first_waiting is None else str(gate.first_waiting)),
    ]


def _some(holders: Sequence[object]) -> str:
    return "–" if not holders else f"{holders[0]}" + (f" and {len(holders) - 1:,} more" if len(holders) > 1 else "")

"""`mainspring queue`: what waits where, how fast it moves, how many slots it wants; pause and resume."""

from typing import Annotated

from cyclopts import Parameter
from msgspec import to_builtins
from rich.text import Text

from mainspring.cli.command import Invocation, command
from mainspring.cli.tables import Column, fitted
from mainspring.cli.text import as_rate, as_span, safe
from mainspring.model.capacity import Pressure, Queue

COLUMNS = (
    Column("queue", least=16),
    Column(""),  # paused, if it is
    Column("depth", is_number=True),
    Column("oldest", is_number=True),
    Column("running", is_number=True, leave_out=1),
    Column("arrive/s", is_number=True, leave_out=2),
    Column("finish/s", is_number=True, leave_out=3),
    Column("takes", is_number=True, leave_out=4),
    Column("slots", is_number=True),
    Column("slots wanted", is_number=True),
    Column("scheduled", is_number=True, leave_out=5),
    Column("due/s", is_number=True, leave_out=6),
)


@command("list")
async def list_queues(*, invocation: Invocation) -> None:
    """List queues.

    `slots wanted` is how many slots would keep up with what arrives and work the
    backlog off in half a minute: scale by it. `scheduled` is how many wait for
    their time, `due/s` how many of those come. Rates are over the last minute.

    Examples:
      mainspring queue list
      mainspring queue list -o json
    """
    async with invocation.client() as client:
        queues = await client.queues.list()
    if invocation.wants_json:
        invocation.print_json({"queues": to_builtins(queues)})
    elif queues:
        invocation.print_lines(lines_of(queues, invocation.room))
    else:
        invocation.print("No queues. One appears with the first job that uses it.")


def lines_of(queues: list[Queue], room: int | None) -> list[Text]:
    return fitted(COLUMNS, [_row(queue) for queue in queues], room)


def _row(queue: Queue) -> list[Text]:
    is_paused = queue.paused_at is not None
    return [
        Text(safe(queue.name)),
        Text("paused" if is_paused else "", style="yellow"),
        Text(f"{queue.depth:,}"),
        Text("–" if queue.oldest_seconds is None else as_span(max(0.0, queue.oldest_seconds))),
        Text(f"{queue.holding:,}"),
        Text(as_rate(queue.arrivals_per_s)),
        Text(as_rate(queue.finished_per_s)),
        Text("–" if queue.mean_seconds is None else as_span(queue.mean_seconds)),
        Text(f"{queue.slots:,}"),
        Text(f"{queue.wanted_slots:,}", style="red" if queue.wanted_slots > queue.slots and not is_paused else ""),
        Text(f"{queue.scheduled:,}"),
        Text(as_rate(queue.promoted_per_s)),
    ]


@command("pause")
async def pause(
    queue: Annotated[str, Parameter(help="The queue's name.")],
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; kept in the audit.")] = "",
    invocation: Invocation,
) -> None:
    """Stop claiming from a queue.

    What is being executed goes on; what waits, waits. Runs are still accepted.

    Example:
      mainspring queue pause mail --reason "the mail server is down"
    """
    async with invocation.client() as client:
        is_new = await client.queues.pause(queue, reason=reason)
    if invocation.wants_json:
        invocation.print_json({"queue": queue, "paused": True, "changed": is_new})
    else:
        invocation.print("paused" if is_new else "it was paused before")


@command("resume")
async def resume(
    queue: Annotated[str, Parameter(help="The queue's name.")],
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; kept in the audit.")] = "",
    invocation: Invocation,
) -> None:
    """Claim from a queue again.

    Example:
      mainspring queue resume mail
    """
    async with invocation.client() as client:
        is_new = await client.queues.resume(queue, reason=reason)
    if invocation.wants_json:
        invocation.print_json({"queue": queue, "paused": False, "changed": is_new})
    else:
        invocation.print("resumed" if is_new else "it was not paused")


@command("pressure")
async def pressure(
    queue: Annotated[str, Parameter(help="The queue's name.")],
    /,
    *,
    invocation: Invocation,
) -> None:
    """Show how much is in line, against the marks of the queue.

    Producers ask this before they add more.

    Example:
      mainspring queue pressure mail
    """
    async with invocation.client() as client:
        found = await client.queues.pressure(queue)
    if invocation.wants_json:
        invocation.print_json({"pressure": to_builtins(found)})
    else:
        invocation.print(_pressure(found))


def _pressure(found: Pressure) -> str:
    waiting = f", {found.waiting:,} more wait for that" if found.waiting else ""
    drained = "" if found.drained_in is None else f"; worked off in {as_span(found.drained_in)}"
    return (
        f"pressure is {found.level}: {found.depth:,} in line{waiting}, {found.utilization:.0%} of the high mark of"
        f" {found.high_mark:,} (low {found.low_mark:,}){drained}{_later(found)}"
    )


def _later(found: Pressure) -> str:
    if not (found.scheduled or found.promoted_per_s):
        return ""
    due = "" if found.promoted_per_s is None else f", {as_rate(found.promoted_per_s)} a second come"
    return f"; {found.scheduled:,} wait for their time{due}"


@command("marks")
async def set_marks(
    queue: Annotated[str, Parameter(help="The queue's name.")],
    /,
    *,
    high: Annotated[int | None, Parameter(help="So many of a priority in line, and no more come.")] = None,
    low: Annotated[int | None, Parameter(help="Down to so many, and more come; half of it unless told.")] = None,
    reason: Annotated[str, Parameter(help="Why; kept in the audit.")] = "",
    invocation: Invocation,
) -> None:
    """Set how many runs may be in line before those that become due wait.

    Without marks: as always. What is submitted for now comes in line whatever the marks.

    Example:
      mainspring queue marks mail --high 5000 --low 1000
    """
    async with invocation.client() as client:
        await client.queues.set_marks(queue, high=high, low=low, reason=reason)
        found = await client.queues.pressure(queue)
    if invocation.wants_json:
        invocation.print_json({"pressure": to_builtins(found)})
    else:
        invocation.print(_pressure(found))

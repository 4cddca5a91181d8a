"""`mainspring queue`: what waits where, how fast it moves, how many slots it wants; pause and resume."""

from typing import Annotated, Literal

from cyclopts import Parameter
from msgspec import to_builtins
from rich.table import Table
from rich.text import Text

from mainspring.cli.command import Invocation, command
from mainspring.cli.text import as_rate, as_span, safe
from mainspring.model.capacity import Queue

HEADINGS = ("queue", "depth", "oldest", "running", "arrive/s", "finish/s", "takes", "slots", "slots wanted")


@command("list")
async def list_queues(*, invocation: Invocation) -> None:
    """List queues.

    `slots wanted` is how many slots would keep up with what arrives and work the
    backlog off in half a minute: scale by it. Rates are over the last minute.

    Examples:
      mainspring queue list
      mainspring queue list -o json
    """
    async with invocation.client() as client:
        queues = await client.queues.list()
    if invocation.wants_json:
        invocation.print_json({"queues": to_builtins(queues)})
    elif queues:
        invocation.print(table_of(queues))
    else:
        invocation.print("No queues. One appears with the first job that uses it.")


def table_of(queues: list[Queue]) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for heading in HEADINGS:
        justify: Literal["left", "right"] = "left" if heading == "queue" else "right"
        table.add_column(heading, justify=justify, no_wrap=True)
    for queue in queues:
        table.add_row(*_row(queue))
    return table


def _row(queue: Queue) -> list[Text]:
    name = Text(safe(queue.name, 40))
    if queue.paused_at is not None:
        name.append("  paused", style="yellow")
    is_short = queue.paused_at is None and queue.wanted_slots > queue.slots
    return [
        name,
        Text(f"{queue.depth:,}"),
        Text("–" if queue.oldest_seconds is None else as_span(max(0.0, queue.oldest_seconds))),
        Text(f"{queue.holding:,}"),
        Text(as_rate(queue.arrivals_per_s)),
        Text(as_rate(queue.finished_per_s)),
        Text("–" if queue.mean_seconds is None else as_span(queue.mean_seconds)),
        Text(f"{queue.slots:,}"),
        Text(f"{queue.wanted_slots:,}", style="red" if is_short else ""),
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

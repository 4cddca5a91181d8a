"""`mainspring operation`: acts on many runs, how far they got, and going on with one that was cut off."""

from datetime import datetime
from typing import Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from mainspring.cli.bulk import work_off
from mainspring.cli.command import Invocation, command
from mainspring.cli.parsing import is_beginning_of_id, whole_id
from mainspring.cli.tables import Column, ago, fitted
from mainspring.cli.text import as_json, safe
from mainspring.model.listing import MOST_PER_PAGE
from mainspring.model.operation import Operation, OperationKind

COLUMNS = (
    Column("operation", is_id=True),
    Column("kind"),
    Column("state"),
    Column("done"),
    Column("skipped", is_number=True, leave_out=2),
    Column("started"),
    Column("by", least=10, leave_out=1),
    Column("runs", least=12, leave_out=3),
    Column("reason", least=12),
)


@command("list")
async def list_operations(
    *, limit: Annotated[int, Parameter(help="How many, at most 1000.")] = 20, invocation: Invocation
) -> None:
    """List operations, newest first.

    Where there is no room for ids, their beginnings are shown, which resume takes
    as well; -o json has them whole.

    Examples:
      mainspring operation list
      mainspring operation list --limit 100 -o json
    """
    async with invocation.client() as client:
        operations = await client.operations.list(limit=limit)
    if invocation.wants_json:
        invocation.print_json({"operations": operations})
        return
    if not operations:
        invocation.print("No operations. Acts on many runs make them: mainspring run cancel --job …")
        return
    rows = [_row(each, invocation.now) for each in operations]
    invocation.print_lines(fitted(COLUMNS, rows, invocation.room))


def _row(operation: Operation, now: datetime) -> list[Text]:
    total = "" if operation.expected is None else f" of {operation.expected:,}"
    return [
        Text(str(operation.id)),
        Text(operation.kind.value),
        Text("done", style="green") if operation.is_over else Text("open", style="yellow"),
        Text(f"{operation.done:,}{total}"),
        Text(f"{operation.skipped:,}"),
        Text(ago(operation.started_at, now)),
        Text(safe(operation.actor)),
        Text(safe(as_json(_chosen(operation), indent=0), 60)),
        Text(safe(operation.reason, 60)),
    ]


def _chosen(operation: Operation) -> dict[str, Any]:
    """By what runs are chosen: a filter, or occurrences of a schedule."""
    if operation.kind is OperationKind.BACKFILL:
        return {name: operation.change[name] for name in ("schedule", "since", "before", "which")}
    return operation.wanted.as_document()


@command("resume")
async def resume(
    operation_id: Annotated[str, Parameter(name="id", help="The operation's id, or its beginning.")],
    /,
    *,
    invocation: Invocation,
) -> int:
    """Go on with an operation that was cut off.

    It goes on after its last batch; no run is treated twice, even if someone else
    works on the same operation.

    Example:
      mainspring operation resume ID
    """
    async with invocation.client() as client:
        if is_beginning_of_id(operation_id):
            latest = await client.operations.list(limit=MOST_PER_PAGE)
            operation_id = whole_id(operation_id, [each.id for each in latest])
        return await work_off(invocation, client, operation_id)

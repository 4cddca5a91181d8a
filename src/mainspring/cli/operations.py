"""`mainspring operation`: acts on many runs, how far they got, and going on with one that was cut off."""

from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from mainspring.cli.bulk import verb_of, work_off
from mainspring.cli.command import Invocation, command
from mainspring.cli.tables import ago, plain_table
from mainspring.cli.text import as_json, safe


@command("list")
async def list_operations(
    *, limit: Annotated[int, Parameter(help="How many, at most 1000.")] = 20, invocation: Invocation
) -> None:
    """List operations, newest first.

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
    now = invocation.now
    table = plain_table("operation", "kind", "state", "done", "skipped", "started", "by", "runs", "reason")
    for column in table.columns[:6]:
        column.no_wrap = True
    for each in operations:
        total = "" if each.expected is None else f" of {each.expected:,}"
        table.add_row(
            str(each.id),
            verb_of(each.kind),
            Text("done", style="green") if each.is_over else Text("open", style="yellow"),
            f"{each.done:,}{total}",
            f"{each.skipped:,}",
            ago(each.started_at, now),
            Text(safe(each.actor, 30)),
            Text(safe(as_json(each.wanted.as_document(), indent=0), 60)),
            Text(safe(each.reason, 40)),
        )
    invocation.print(table)


@command("resume")
async def resume(
    operation_id: Annotated[str, Parameter(name="id", help="The operation's id.")],
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
        return await work_off(invocation, client, operation_id)

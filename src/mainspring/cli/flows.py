"""`mainspring flow`: graphs of runs, as trees; cancelled and retried as one."""

from typing import Annotated

from cyclopts import Parameter
from msgspec import to_builtins
from rich.text import Text

from mainspring.cli.command import Flag, Invocation, command
from mainspring.cli.tables import Column, fitted
from mainspring.cli.text import as_instant, safe
from mainspring.model.flow import FlowState, FlowStatus
from mainspring.model.flow_drawing import MOST_DRAWN, MOST_LINES, mermaid, tree

COLUMNS = (
    Column("id", least=36),
    Column("name", least=12),
    Column("state"),
    Column("runs", is_number=True),
    Column("done", is_number=True),
    Column("submitted", leave_out=1),
    Column("by", leave_out=2),
)
COLOURS = {
    FlowState.RUNNING: "cyan",
    FlowState.SUCCEEDED: "green",
    FlowState.FAILED: "red",
    FlowState.CANCELLED: "yellow",
}

FlowId = Annotated[str, Parameter(name="id", help="The flow's id.")]
Reason = Annotated[str, Parameter(help="Why; kept in the audit.")]


@command("list")
async def list_flows(
    *,
    limit: Annotated[int, Parameter(help="At most so many.")] = 20,
    before: Annotated[str | None, Parameter(help="Those that were submitted before this one.")] = None,
    invocation: Invocation,
) -> None:
    """List flows, newest first.

    Examples:
      mainspring flow list
      mainspring flow list --limit 5 -o json
    """
    async with invocation.client() as client:
        flows = await client.flows.list(limit=limit, before=before)
    if invocation.wants_json:
        invocation.print_json({"flows": [_summary(each) for each in flows]})
    elif flows:
        invocation.print_lines(fitted(COLUMNS, [_row(each) for each in flows], invocation.room))
    else:
        invocation.print("No flows. Submit one from code: app.flow(name)")


@command("show")
async def show(
    flow_id: FlowId,
    /,
    *,
    as_mermaid: Annotated[bool, Parameter(name="--mermaid", negative="", help="As a Mermaid flowchart.")] = False,
    shows_all: Annotated[bool, Flag, Parameter(name="--all", help="Every run, however many there are.")] = False,
    invocation: Invocation,
) -> None:
    """Show a flow as a tree: each run below what it waits for, and how it is doing.

    Of a large flow, the first 200 runs are shown, and below them all others that
    run or have failed. Mermaid draws 500, first of all those.

    Examples:
      mainspring flow show ID
      mainspring flow show ID --mermaid
      mainspring flow show ID --all
    """
    async with invocation.client() as client:
        found = await client.flows.find(flow_id)
    if as_mermaid and not invocation.wants_json:
        invocation.print(mermaid(found, len(found.nodes) if shows_all else MOST_DRAWN))
    else:
        _print(invocation, found, shows_all=shows_all)


@command("wait")
async def wait(
    flow_id: FlowId,
    /,
    *,
    timeout: Annotated[float | None, Parameter(help="Give up after so many seconds.")] = None,
    invocation: Invocation,
) -> None:
    """Wait until nothing of a flow goes on, and show it.

    Example:
      mainspring flow wait ID --timeout 600
    """
    async with invocation.client() as client:
        found = await client.flows.wait(flow_id, timeout)
    _print(invocation, found)


@command("cancel")
async def cancel(flow_id: FlowId, /, *, reason: Reason = "", invocation: Invocation) -> None:
    """Cancel all of a flow that waits or runs. What is done stays done.

    Example:
      mainspring flow cancel ID --reason "wrong month"
    """
    async with invocation.client() as client:
        found = await client.flows.cancel(flow_id, reason=reason)
    _print(invocation, found)


@command("retry")
async def retry(flow_id: FlowId, /, *, reason: Reason = "", invocation: Invocation) -> None:
    """Run again what failed, children included, and what was cancelled because of it. What is done stays done.

    Example:
      mainspring flow retry ID --reason "the bucket is there again"
    """
    async with invocation.client() as client:
        found = await client.flows.retry(flow_id, reason=reason)
    _print(invocation, found)


def _print(invocation: Invocation, flow: FlowStatus, *, shows_all: bool = False) -> None:
    if invocation.wants_json:
        invocation.print_json(_document(flow))
        return
    counts = ", ".join(f"{number:,} {state}" for state, number in flow.counts.items())
    state = Text(flow.state.value, style=f"bold {COLOURS[flow.state]}")
    invocation.print(Text.assemble(f"flow {safe(flow.name)}  ", state, f"  {counts}"))
    invocation.print_lines([Text(safe(line)) for line in tree(flow, None if shows_all else MOST_LINES)])


def _document(flow: FlowStatus) -> dict[str, object]:
    return {**to_builtins(flow), "counts": flow.counts}


def _summary(flow: FlowStatus) -> dict[str, object]:
    return {name: value for name, value in _document(flow).items() if name != "nodes"}


def _row(flow: FlowStatus) -> list[Text]:
    done = flow.counts.get("succeeded", 0)
    words = [str(flow.id), safe(flow.name), flow.state.value, f"{len(flow.nodes):,}", f"{done:,}"]
    words += [as_instant(flow.submitted_at), safe(flow.submitted_by)]
    return [Text(word, style=COLOURS[flow.state] if word == flow.state else "") for word in words]

"""`mainspring run explain`: the one condition that keeps a run from starting, and what there is to do about it."""

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from mainspring.cli.command import Invocation, command
from mainspring.cli.tables import COLOURS
from mainspring.cli.text import as_instant, as_span, safe
from mainspring.model.admission import Explanation, Gate, Holder

HOLDERS_SHOWN = 5


@command("explain")
async def explain(
    run_id: Annotated[str, Parameter(name="id", help="The run's id.")], /, *, invocation: Invocation
) -> None:
    """Say why a run is not running: what it waits for, and what to do about it.

    Where several things keep it from starting, the first is the one that does so
    now; those after `then` would be next.

    Examples:
      mainspring run explain ID
      mainspring run explain ID -o json
    """
    async with invocation.client() as client:
        found = await client.runs.explain(run_id)
    if invocation.wants_json:
        invocation.print_json(found)
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in lines_about(found):
        table.add_row(name, value if isinstance(value, Text) else Text(safe(value)))
    invocation.print(table)


def lines_about(found: Explanation) -> Iterator[tuple[str, str | Text]]:
    yield "run", f"{found.run_id} of job {found.job}, queue {found.queue}"
    yield "state", Text(found.state.value, style=f"bold {COLOURS.get(found.state, '')}")
    yield "because", found.says
    if found.remedy is not None:
        yield "to do", found.remedy
    for each in found.then:
        yield "then", each.says if each.remedy is None else f"{each.says} ({each.remedy})"
    if found.ahead is not None:
        yield "ahead", f"{'' if found.ahead_is_exact else 'at least '}{found.ahead:,} {_where(found)}"
    if found.gate is Gate.WORKERS_BUSY:
        yield from _holders(found.holders)
    if found.earliest_at is not None:
        yield "earliest", _earliest(found)


_WHERE = {
    Gate.LIMIT: "at its limit",
    Gate.RATE: "at its limit",
    Gate.SHARE: "of those that share its turns",
    Gate.BREAKER: "at its circuit breaker",
    Gate.OVERLAP: "of its schedule",
    Gate.BACKPRESSURE: "waiting for room in its line",
}


def _where(found: Explanation) -> str:
    """Among whom those are who come before it; it may wait at a gate while it is not yet due."""
    gates = [found.gate, *(each.gate for each in found.then)]
    return next((_WHERE[gate] for gate in gates if gate in _WHERE), "in its line")


def _holders(holders: list[Holder]) -> Iterator[tuple[str, str]]:
    for each in holders[:HOLDERS_SHOWN]:
        yield "worker", f"{each.host}:{each.pid} holds {each.holding} of its line, with {each.slots} slots"
    if len(holders) > HOLDERS_SHOWN:
        yield "", f"and {len(holders) - HOLDERS_SHOWN} more"


def _pace(found: Explanation) -> str:
    return "its rate" if found.gate is Gate.RATE else "how fast its line moves"


def _earliest(found: Explanation) -> str:
    assert found.earliest_at is not None
    wait = max(0.0, (found.earliest_at - found.at).total_seconds())
    how = f", by {_pace(found)}" if found.is_estimate else ""
    at = f"{as_instant(found.earliest_at)}, in {as_span(wait)}{how}"
    if found.as_soon_as is not None:
        return f"as soon as {found.as_soon_as}" + (f"; not before {at}" if wait else "")
    return at if wait else "at once"

"""`mainspring schedule backfill`: runs for instants of a schedule that have passed."""

from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from cyclopts import Parameter
from rich.text import Text

from mainspring.cli.bulk import confirm, work_off
from mainspring.cli.command import Flag, Invocation, command
from mainspring.cli.parsing import parse_moment
from mainspring.cli.schedules import as_local
from mainspring.cli.tables import COLOURS, Column, whole
from mainspring.cli.text import counted
from mainspring.model.backfill import BackfillOccurrence, BackfillPlan
from mainspring.schedule.zones import zone_named


@command("backfill")
async def backfill(
    name: Annotated[str, Parameter(help="The schedule's name.")],
    /,
    *,
    since: Annotated[str, Parameter(help="From then on: 12h (ago), or 2026-12-24T18:00Z.")],
    before: Annotated[str | None, Parameter(help="… and before then. Else up to now.")] = None,
    which: Annotated[
        Literal["missing", "failed", "all"],
        Parameter(help="Without a run; with a run that failed, which is run again; or all that are over or missing."),
    ] = "missing",
    order: Annotated[Literal["forwards", "backwards"], Parameter(help="The oldest first, or the latest.")] = "forwards",
    version: Annotated[
        Literal["present", "then"], Parameter(help="By the schedule as it is, or as it was at each instant.")
    ] = "present",
    priority: Annotated[int | None, Parameter(help="Of these runs: 0 (most urgent) to 9.")] = None,
    rate: Annotated[float | None, Parameter(help="At most so many runs per second.")] = None,
    concurrency: Annotated[int | None, Parameter(help="At most so many of them unfinished at once.")] = None,
    dry_run: Annotated[bool, Flag, Parameter(help="Only list the occurrences; of many, both ends.")] = False,
    yes: Annotated[bool, Flag, Parameter(help="Do not ask.")] = False,
    reason: Annotated[str, Parameter(help="Why; kept with the operation and in the audit.")] = "",
    invocation: Invocation,
) -> int:
    """Make runs for instants of a schedule that have passed.

    An occurrence that has a run gets no other: that one is run again, if --which
    says so. Handlers see which occurrence they are for. It is an operation that can
    be resumed if it is cut off.

    Examples:
      mainspring schedule backfill nightly --since 7d --dry-run
      mainspring schedule backfill nightly --since 7d --priority 9 --concurrency 2
      mainspring schedule backfill nightly --since 2026-12-01T00:00Z --which failed
    """
    now = invocation.now
    asked: dict[str, Any] = {
        "since": parse_moment(since, "since", now),
        "before": parse_moment(before, "before", now),
        "which": which,
        "order": order,
        "version": version,
        "priority": priority,
        "rate": rate,
        "concurrency": concurrency,
    }
    async with invocation.client() as client:
        backfills = (await client.services()).backfills
        plan = await backfills.plan(client.actor, name, **asked)
        if dry_run or not plan.count:
            _print_plan(invocation, name, (await client.schedules.find(name)).zone, plan)
            return 0
        if not yes:
            question = f"Backfill {counted(plan.count, 'occurrence')} of {name}?"
            confirm(invocation, question, "Say --yes, or --dry-run to list them.")
        operation = await backfills.start(client.actor, plan, reason)
        invocation.say(f"operation {operation.id}; if it is cut off: mainspring operation resume {operation.id}")
        return await work_off(invocation, client, operation.id)


def _print_plan(invocation: Invocation, name: str, zone: str, plan: BackfillPlan) -> None:
    if invocation.wants_json:
        invocation.print_json({"schedule": name, "zone": zone, "count": plan.count, "occurrences": plan.occurrences})
    elif not plan.count:
        invocation.print("There is nothing to backfill.")
    else:
        with_seconds = any(each.nominal_at.second for each in plan.occurrences)
        becomes = Column("becomes", is_below=True)
        columns = (Column(zone), Column("version", is_number=True, leave_out=1), becomes, Column("state"))
        rows = [_row(each, zone_named(zone), seconds=with_seconds) for each in plan.occurrences]
        if not plan.is_whole:
            half = len(rows) // 2
            rows[half:half] = [[Text(f"… {plan.count - len(rows):,} more …"), Text(""), Text(""), Text("")]]
        invocation.print_lines(whole(columns, rows, invocation.room))


def _row(occurrence: BackfillOccurrence, zone: ZoneInfo, *, seconds: bool) -> list[Text]:
    at = occurrence.nominal_at.astimezone(zone)
    state = occurrence.run_state
    return [
        Text(as_local(at, seconds=seconds)),
        Text(str(occurrence.version)),
        Text("a run" if occurrence.run_id is None else f"rerun of {occurrence.run_id}"),
        Text("" if state is None else state.value, style="" if state is None else COLOURS.get(state, "")),
    ]

"""`mainspring dead-letter`: list runs that are out of attempts, requeue or purge them."""

from typing import Annotated

from cyclopts import Parameter

from mainspring.app.loading import load_app
from mainspring.cli.arguments import new_arguments
from mainspring.cli.bulk import DeadFilters, Many, check_arguments, check_choice, operate
from mainspring.cli.command import Flag, Invocation, Repeatable, command
from mainspring.cli.parsing import parse_span
from mainspring.cli.runs import print_page, print_run
from mainspring.control.dead import Moved
from mainspring.model.operation import OperationKind


@command("list")
async def list_dead(
    *,
    filters: DeadFilters = DeadFilters(),  # noqa: B008  frozen
    limit: Annotated[int, Parameter(help="How many, at most 1000.")] = 20,
    cursor: Annotated[str | None, Parameter(help="Go on after the page that ended with this cursor.")] = None,
    invocation: Invocation,
) -> None:
    """List runs that are out of attempts.

    Examples:
      mainspring dead-letter list --job report
      mainspring dead-letter list --error "connection refused" -o json
    """
    await print_page(invocation, filters.wanted(invocation.now), limit, cursor)


@command("show")
async def show(
    run_id: Annotated[str, Parameter(name="id", help="The run's id.")],
    /,
    *,
    attempt: Annotated[int | None, Parameter(help="Show the traceback of the attempt with this number.")] = None,
    invocation: Invocation,
) -> None:
    """Show one: its last error, attempts and arguments.

    The same as run show. The traceback of the last attempt that left one is shown
    as well; -o json has all of them.

    Examples:
      mainspring dead-letter show ID
      mainspring dead-letter show ID --attempt 1
    """
    await print_run(invocation, run_id, attempt)


@command("requeue")
async def requeue(
    *run_ids: Annotated[str, Parameter(name="ids", help="The runs' ids.")],
    filters: DeadFilters = DeadFilters(),  # noqa: B008  frozen
    many: Many = Many(),  # noqa: B008  frozen
    arg: Annotated[tuple[str, ...], Repeatable, Parameter(help="name=value: with this argument changed.")] = (),
    payload: Annotated[str | None, Parameter(help="With these arguments, as one JSON object.")] = None,
    edit: Annotated[bool, Flag, Parameter(help="Edit the arguments in $EDITOR.")] = False,
    app: Annotated[str | None, Parameter(help="module:attribute; the arguments are then checked here.")] = None,
    max_age: Annotated[str | None, Parameter(help="Expire if not started so long after now.")] = None,
    invocation: Invocation,
) -> int:
    """Put dead runs back in line.

    They are the same runs, with their history, and have all their attempts again.
    They do not expire, unless a new --max-age is given.

    Examples:
      mainspring dead-letter requeue ID ID --reason "the bank is back"
      mainspring dead-letter requeue ID --edit --app shop.jobs:app
      mainspring dead-letter requeue --job report --error "timed out" --yes
    """
    check_choice(run_ids, filters, many)
    age = parse_span(max_age, "max-age")
    check_arguments(run_ids, arg, payload, edit)
    application = None if app is None else load_app(app)
    async with invocation.client(application) as client:
        if not run_ids:
            return await operate(invocation, client, OperationKind.REQUEUE, filters, many, max_age=age)
        changed = await new_arguments(client, application, run_ids[0], payload=payload, pairs=arg, in_editor=edit)
        moved = await client.runs.requeue(*run_ids, arguments=changed.arguments, max_age=age, reason=many.reason)
        if len(run_ids) == 1:
            await (await client.services()).dead.raise_unless_moved(client.actor, moved, "requeued")
    return print_moved(invocation, moved, "requeued")


@command("purge")
async def purge(
    *run_ids: Annotated[str, Parameter(name="ids", help="The runs' ids.")],
    filters: DeadFilters = DeadFilters(),  # noqa: B008  frozen
    many: Many = Many(),  # noqa: B008  frozen
    invocation: Invocation,
) -> int:
    """End dead runs for good.

    A purged run has ended as cancelled. Its history stays, with its arguments,
    and it can be run again with: mainspring run rerun ID

    Examples:
      mainspring dead-letter purge ID --reason "paid in cash"
      mainspring dead-letter purge --job report --until 30d --yes
    """
    check_choice(run_ids, filters, many)
    async with invocation.client() as client:
        if not run_ids:
            return await operate(invocation, client, OperationKind.PURGE, filters, many)
        moved = await client.runs.purge(*run_ids, reason=many.reason)
        if len(run_ids) == 1:
            await (await client.services()).dead.raise_unless_moved(client.actor, moved, "purged")
    return print_moved(invocation, moved, "purged")


def print_moved(invocation: Invocation, moved: Moved, verb: str) -> int:
    """What was done to runs named by their ids; exits with 1 if some of them were not dead."""
    if invocation.wants_json:
        invocation.print_json(moved._asdict())
    else:
        invocation.print(f"{len(moved.done):,} {verb}")
        for run_id in moved.skipped:
            invocation.print(f"skipped, not dead, or another run holds its unique key: {run_id}")
    return 1 if moved.skipped else 0

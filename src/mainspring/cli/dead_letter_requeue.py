"""`mainspring dead-letter requeue`: put dead runs back in line."""

from typing import Annotated

from cyclopts import Parameter

from mainspring.app.loading import load_app
from mainspring.cli.arguments import new_arguments
from mainspring.cli.bulk import Many, check_arguments, check_choice, operate
from mainspring.cli.command import Flag, InSession, Repeatable, command
from mainspring.cli.dead_letter_purge import print_moved
from mainspring.cli.filters import DeadFilters
from mainspring.cli.parsing import parse_span
from mainspring.model.operation import OperationKind


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
    session: InSession,
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
    async with session.client(application) as client:
        if not run_ids:
            return await operate(session, client, OperationKind.REQUEUE, filters, many, max_age=age)
        changed = await new_arguments(client, application, run_ids[0], payload=payload, pairs=arg, in_editor=edit)
        dead = (await client.services()).dead
        moved = await dead.requeue(
            run_ids, payload=changed.payload, max_age=age, reason=many.reason, actor=client.submitted_by
        )
        if len(run_ids) == 1:
            await dead.raise_unless_moved(moved, "requeued")
    return print_moved(session, moved, "requeued")

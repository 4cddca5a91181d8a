"""`mainspring run retry`: requeue a dead run, run one that ended again."""

from typing import Annotated

from cyclopts import Parameter

from mainspring.app.loading import load_app
from mainspring.cli.arguments import new_arguments
from mainspring.cli.bulk import Many, check_arguments, check_choice, operate
from mainspring.cli.command import Flag, InSession, Repeatable, command
from mainspring.cli.filters import Filters
from mainspring.model.ids import parse_run_id
from mainspring.model.operation import OperationKind


@command("retry")
async def retry(
    run_id: Annotated[str | None, Parameter(name="id", help="The run's id.")] = None,
    /,
    *,
    filters: Filters = Filters(),  # noqa: B008  frozen
    many: Many = Many(),  # noqa: B008  frozen
    arg: Annotated[tuple[str, ...], Repeatable, Parameter(help="name=value: with this argument changed.")] = (),
    payload: Annotated[str | None, Parameter(help="With these arguments, as one JSON object.")] = None,
    edit: Annotated[bool, Flag, Parameter(help="Edit the arguments in $EDITOR.")] = False,
    app: Annotated[str | None, Parameter(help="module:attribute; the arguments are then checked here.")] = None,
    session: InSession,
) -> int:
    """Requeue a dead run; run one that ended again.

    A dead run goes back in line and stays the same run. One that ended (say,
    succeeded) stays as it is, and a new run is made of it. By a filter, only dead
    runs are tried again, unless --state names others.

    Examples:
      mainspring run retry ID --reason "the bank is back"
      mainspring run retry ID --arg amount=12 --app shop.jobs:app
      mainspring run retry --job report --state lost --since 1d
    """
    named = () if run_id is None else (run_id,)
    check_choice(named, filters, many)
    check_arguments(named, arg, payload, edit)
    application = None if app is None else load_app(app)
    async with session.client(application) as client:
        if run_id is None:
            return await operate(session, client, OperationKind.RETRY, filters, many)
        changed = await new_arguments(client, application, run_id, payload=payload, pairs=arg, in_editor=edit)
        retries = (await client.services()).retries
        tried = await retries.retry(run_id, payload=changed.payload, reason=many.reason, actor=client.submitted_by)
    if session.wants_json:
        session.print_json({"id": tried, "rerun_of": None if tried == parse_run_id(run_id) else run_id})
    else:
        session.print(str(tried))
    return 0

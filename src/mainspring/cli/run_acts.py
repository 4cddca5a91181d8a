"""`mainspring run cancel`, `run change` and `run rerun`: acts on runs, one by its id or many by a filter."""

from typing import Annotated

from cyclopts import Parameter

from mainspring.app.loading import load_app
from mainspring.app.mainspring import Mainspring
from mainspring.cli.arguments import new_arguments
from mainspring.cli.bulk import Filters, Many, check_arguments, check_choice, operate
from mainspring.cli.command import Flag, Invocation, Repeatable, command
from mainspring.cli.parsing import parse_instant
from mainspring.errors import InvalidInput
from mainspring.model.ids import parse_run_id
from mainspring.model.lifecycle import State
from mainspring.model.operation import OperationKind


@command("cancel")
async def cancel(
    run_id: Annotated[str | None, Parameter(name="id", help="The run's id.")] = None,
    /,
    *,
    filters: Filters = Filters(),  # noqa: B008  frozen
    many: Many = Many(),  # noqa: B008  frozen
    invocation: Invocation,
) -> int:
    """End a waiting run, or many; ask those that are running to stop.

    A run that is being executed is told to stop and ends as cancelled when its
    handler does. By a filter, many are cancelled in one operation that can be
    resumed if it is cut off.

    Examples:
      mainspring run cancel ID --reason "it was sent by hand" -o json
      mainspring run cancel --job report --state scheduled --yes
    """
    check_choice(() if run_id is None else (run_id,), filters, many)
    async with invocation.client() as client:
        if run_id is None:
            return await operate(invocation, client, OperationKind.CANCEL, filters, many)
        await _cancel_one(invocation, client, run_id, many.reason)
    return 0


async def _cancel_one(invocation: Invocation, client: Mainspring, run_id: str, reason: str) -> None:
    state = await client.runs.cancel(run_id, reason=reason)
    if invocation.wants_json:
        invocation.print_json({"id": run_id, "state": state})
    elif state is State.CANCELLED:
        invocation.print("cancelled")
    else:
        invocation.print("asked to stop; it ends when its handler does")


@command("change")
async def change(
    run_id: Annotated[str | None, Parameter(name="id", help="The run's id.")] = None,
    /,
    *,
    filters: Filters = Filters(),  # noqa: B008  frozen
    many: Many = Many(),  # noqa: B008  frozen
    priority: Annotated[int | None, Parameter(help="0 (most urgent) to 9.")] = None,
    to_queue: Annotated[str | None, Parameter(help="Move to this queue.")] = None,
    at: Annotated[str | None, Parameter(help="Start at this instant: 2026-12-24T18:00:00+01:00.")] = None,
    set_tag: Annotated[tuple[str, ...], Repeatable, Parameter(help="Instead of its tags; may be repeated.")] = (),
    arg: Annotated[tuple[str, ...], Repeatable, Parameter(help="name=value: with this argument changed.")] = (),
    payload: Annotated[str | None, Parameter(help="All arguments as one JSON object.")] = None,
    edit: Annotated[bool, Flag, Parameter(help="Edit the arguments in $EDITOR.")] = False,
    app: Annotated[str | None, Parameter(help="module:attribute; the arguments are then checked here.")] = None,
    invocation: Invocation,
) -> int:
    """Change a run that has not started, or many.

    Without any change named, the arguments are opened in $EDITOR. By a filter,
    the priority or the queue of many runs is changed in one operation that can be
    resumed if it is cut off.

    Examples:
      mainspring run change ID
      mainspring run change ID --priority 1 --at 2026-12-24T18:00:00+01:00
      mainspring run change ID --arg amount=12 --app shop.jobs:app
      mainspring run change --job report --to-queue slow --priority 9 --yes
    """
    check_choice(() if run_id is None else (run_id,), filters, many)
    due_at, tags = parse_instant(at, "at"), set_tag or None
    if run_id is None and (due_at or tags or arg or payload or edit):
        raise InvalidInput(
            "Times, tags and arguments are changed one run at a time.",
            code="change-for-many",
            hint="Many runs can be given another --priority or moved --to-queue.",
        )
    application = None if app is None else load_app(app)
    async with invocation.client(application) as client:
        if run_id is None:
            asked = {"priority": priority, "queue": to_queue}
            return await operate(invocation, client, OperationKind.CHANGE, filters, many, **asked)
        is_bare = (priority, to_queue, due_at, tags, payload) == (None,) * 5 and not arg
        changed = await new_arguments(
            client, application, run_id, payload=payload, pairs=arg, in_editor=edit or is_bare
        )
        run = await client.runs.change(
            run_id,
            revision=changed.revision,
            arguments=changed.arguments,
            priority=priority,
            queue=to_queue,
            tags=tags,
            at=due_at,
        )
    if invocation.wants_json:
        invocation.print_json({"id": run.id, "state": run.state, "revision": run.revision})
    else:
        invocation.print(f"changed; it is {run.state}, revision {run.revision}")
    return 0


@command("rerun")
async def rerun(
    run_id: Annotated[str | None, Parameter(name="id", help="The run's id.")] = None,
    /,
    *,
    filters: Filters = Filters(),  # noqa: B008  frozen
    many: Many = Many(),  # noqa: B008  frozen
    arg: Annotated[tuple[str, ...], Repeatable, Parameter(help="name=value: with this argument changed.")] = (),
    payload: Annotated[str | None, Parameter(help="With these arguments, as one JSON object.")] = None,
    edit: Annotated[bool, Flag, Parameter(help="Edit the arguments in $EDITOR.")] = False,
    app: Annotated[str | None, Parameter(help="module:attribute; the arguments are then checked here.")] = None,
    invocation: Invocation,
) -> int:
    """Requeue a dead run; run one that ended again.

    A dead run goes back in line and stays the same run. One that ended (say,
    succeeded) stays as it is, and a new run is made of it. By a filter, only dead
    runs are run again, unless --state names others.

    Examples:
      mainspring run rerun ID --reason "the bank is back"
      mainspring run rerun ID --arg amount=12 --app shop.jobs:app
      mainspring run rerun --job report --state lost --since 1d
    """
    named = () if run_id is None else (run_id,)
    check_choice(named, filters, many)
    check_arguments(named, arg, payload, edit)
    application = None if app is None else load_app(app)
    async with invocation.client(application) as client:
        if run_id is None:
            return await operate(invocation, client, OperationKind.RERUN, filters, many)
        changed = await new_arguments(client, application, run_id, payload=payload, pairs=arg, in_editor=edit)
        again = (await client.runs.rerun(run_id, arguments=changed.arguments, reason=many.reason)).id
    if invocation.wants_json:
        invocation.print_json({"id": again, "rerun_of": None if again == parse_run_id(run_id) else run_id})
    else:
        invocation.print(str(again))
    return 0

"""`mainspring run submit`: accept a run, and wait for its result if asked to."""

from typing import Annotated
from uuid import UUID

from cyclopts import Parameter

from mainspring.app.loading import load_app
from mainspring.app.mainspring import Mainspring
from mainspring.cli.command import Flag, InSession, Repeatable, command
from mainspring.cli.parsing import parse_payload, parse_span
from mainspring.cli.run_options import RunOptions
from mainspring.cli.session import Session
from mainspring.cli.submission import submit_by_name, submit_through
from mainspring.cli.text import as_json
from mainspring.model.lifecycle import State


@command("submit")
async def submit(
    job: Annotated[str, Parameter(help="The job's name.")],
    /,
    *,
    arg: Annotated[
        tuple[str, ...], Repeatable, Parameter(help="name=value, once per argument; the value may be JSON.")
    ] = (),
    payload: Annotated[str | None, Parameter(help="All arguments as one JSON object.")] = None,
    app: Annotated[str | None, Parameter(help="module:attribute; the arguments are then checked here.")] = None,
    options: RunOptions = RunOptions(),  # noqa: B008  frozen
    wait: Annotated[bool, Flag, Parameter(help="Wait for the end and print the result.")] = False,
    timeout: Annotated[str | None, Parameter(help="How long to wait: 30s. Without it, for ever.")] = None,
    session: InSession,
) -> None:
    """Accept a run of a job; print its id.

    When the id is printed, the run is durable. Without --app the job is looked up
    in the database, where it appears when an application that defines it first
    starts a worker or submits a run.

    Examples:
      mainspring run submit greet --arg name=Ada
      mainspring run submit greet --payload '{"name": "Ada"}' --wait -o json
      mainspring run submit report --delay 15m --key report-2026-11 --tag monthly
      mainspring run submit report --attempt-timeout 5m --retry max_attempts=2
    """
    arguments = parse_payload(payload, arg)
    patience = parse_span(timeout, "timeout")
    checked = options.checked()
    application = None if app is None else load_app(app)
    async with session.client(application) as client:
        if application is not None:
            run_id = await submit_through(client, application, job, arguments, checked)
        else:
            run_id = await submit_by_name(client, job, arguments, checked)
        if not wait:
            _print_id(session, run_id)
            return
        session.say(f"submitted {run_id}; waiting for its end")
        await _print_result(session, client, run_id, None if patience is None else patience.total_seconds())


def _print_id(session: Session, run_id: UUID) -> None:
    if session.wants_json:
        session.print_json({"id": run_id})
    else:
        session.print(str(run_id))


async def _print_result(session: Session, client: Mainspring, run_id: UUID, timeout: float | None) -> None:
    result = await client.result(run_id, timeout)
    if session.wants_json:
        session.print_json({"id": run_id, "state": State.SUCCEEDED, "result": result})
    else:
        session.print(as_json(result))

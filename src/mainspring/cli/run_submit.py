"""`mainspring run submit`: accept a run, and wait for its result if asked to."""

from dataclasses import dataclass
from typing import Annotated, Literal
from uuid import UUID

from cyclopts import Parameter
from msgspec import to_builtins

from mainspring.app.loading import load_app
from mainspring.app.mainspring import Mainspring
from mainspring.cli.command import Flag, Invocation, Repeatable, command
from mainspring.cli.parsing import parse_instant, parse_payload, parse_retry, parse_span
from mainspring.cli.text import as_json
from mainspring.model.lifecycle import State
from mainspring.model.options import SubmitKeywords, SubmitOptions
from mainspring.model.run import Accepted

Arg = Annotated[tuple[str, ...], Repeatable, Parameter(help="name=value, once per argument; the value may be JSON.")]
Payload = Annotated[str | None, Parameter(help="All arguments as one JSON object.")]
CheckedBy = Annotated[str | None, Parameter(help="module:attribute; the arguments are then checked here.")]


@Parameter(name="*")
@dataclass(frozen=True)
class JobOptions:
    """Instead of what the job says."""

    queue: Annotated[str | None, Parameter(help="Instead of the job's own queue.")] = None
    label: Annotated[
        tuple[str, ...], Repeatable, Parameter(help="Only for workers with this label, instead of the job's labels.")
    ] = ()
    delivery: Annotated[
        Literal["at_least_once", "at_most_once"] | None, Parameter(help="Instead of what the job says.")
    ] = None
    priority: Annotated[int | None, Parameter(help="0 (most urgent) to 9.")] = None
    tag: Annotated[tuple[str, ...], Repeatable, Parameter(help="May be given several times.")] = ()
    max_age: Annotated[
        str | None, Parameter(help="Expire if not started, or started again, so long after it is due.")
    ] = None
    start_within: Annotated[str | None, Parameter(help="Expire if its first attempt has not begun by then.")] = None
    attempt_timeout: Annotated[str | None, Parameter(help="How long an attempt may take.")] = None
    run_timeout: Annotated[str | None, Parameter(help="How long all attempts may take, from the first start.")] = None
    retry: Annotated[
        str | None, Parameter(help="Instead of the job's policy: max_attempts=3,first_delay=5s,jitter=full.")
    ] = None

    def checked(self) -> SubmitOptions:
        """As the application takes them; refuses what breaks a rule."""
        return SubmitOptions.checked(**self.given())

    def given(self) -> SubmitKeywords:
        return {
            "priority": self.priority,
            "queue": self.queue,
            "labels": self.label or None,
            "delivery": self.delivery,
            "tags": self.tag or None,
            "max_age": parse_span(self.max_age, "max-age"),
            "retry": parse_retry(self.retry),
            "timeout": parse_span(self.attempt_timeout, "attempt-timeout"),
            "run_timeout": parse_span(self.run_timeout, "run-timeout"),
            "start_within": parse_span(self.start_within, "start-within"),
        }


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions(JobOptions):
    """And what only one run can have."""

    delay: Annotated[str | None, Parameter(help="Start so much later: 500ms, 30s, 15m, 2h, 1d.")] = None
    at: Annotated[str | None, Parameter(help="Start at an instant: 2026-12-24T18:00:00+01:00.")] = None
    key: Annotated[str | None, Parameter(help="Idempotency key: submitting again returns the first run.")] = None

    def given(self) -> SubmitKeywords:
        own: SubmitKeywords = {
            "at": parse_instant(self.at, "at"),
            "delay": parse_span(self.delay, "delay"),
            "key": self.key,
        }
        return super().given() | own


@command("submit")
async def submit(
    job: Annotated[str, Parameter(help="The job's name.")],
    /,
    *,
    arg: Arg = (),
    payload: Payload = None,
    app: CheckedBy = None,
    options: RunOptions = RunOptions(),  # noqa: B008  frozen
    wait: Annotated[bool, Flag, Parameter(help="Wait for the end and print the result.")] = False,
    timeout: Annotated[str | None, Parameter(help="How long to wait: 30s. Without it, for ever.")] = None,
    invocation: Invocation,
) -> None:
    """Accept a run of a job; print its id.

    When the id is printed, the run is durable; if it is that of an earlier run, which
    has the same idempotency key or unique key, that is said. Without --app the job is looked up
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
    async with invocation.client(application) as client:
        if application is not None:
            application.registry.find(job)  # raises if it is not one of its jobs
        submissions = (await client.services()).submissions
        run = await submissions.submit_by_name(client.actor, job, arguments, checked)
        if not run.is_new:
            invocation.say(f"an earlier run answers: {run.id}")
        if run.backlog is not None:
            invocation.say(f"a backlog is nearly full: {run.backlog}")
        if not wait:
            _print_id(invocation, run)
            return
        invocation.say(f"submitted {run.id}; waiting for its end" if run.is_new else "waiting for its end")
        await _print_result(invocation, client, run.id, None if patience is None else patience.total_seconds())


def _print_id(invocation: Invocation, run: Accepted) -> None:
    if invocation.wants_json:
        near = {} if run.backlog is None else {"backlog": to_builtins(run.backlog)}
        invocation.print_json({"id": run.id, "is_new": run.is_new} | near)
    else:
        invocation.print(str(run.id))


async def _print_result(invocation: Invocation, client: Mainspring, run_id: UUID, timeout: float | None) -> None:
    result = await client.runs.result(run_id, timeout)
    if invocation.wants_json:
        invocation.print_json({"id": run_id, "state": State.SUCCEEDED, "result": result})
    else:
        invocation.print(as_json(result))

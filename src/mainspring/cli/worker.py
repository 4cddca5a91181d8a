"""`mainspring worker`: run workers. `worker list` and `worker drain` are commands of their own under it."""

from typing import Annotated

from cyclopts import Parameter

from mainspring import wiring
from mainspring.app.loading import load_app
from mainspring.cli.command import InSession, command
from mainspring.cli.parsing import parse_bounds, parse_span
from mainspring.worker.settings import WorkerSettings

NOTES = """\
SIGTERM or Ctrl-C drains: nothing new is claimed, what runs may finish, the
rest goes back in line at once. A second signal hurries.

Examples:
  mainspring worker --app shop.jobs:app
  mainspring worker --app shop.jobs:app --queues mail,default --processes 2
  mainspring worker --app shop.jobs:app --autoscale 1:8
  mainspring worker list"""

commands = command("worker", NOTES)
commands.command("mainspring.cli.worker_list:commands", name="list", help="List workers.")
commands.command("mainspring.cli.worker_drain:commands", name="drain", help="Ask workers to finish and end.")

DEFAULTS = WorkerSettings()


@commands.default
async def work(
    *,
    app: Annotated[str, Parameter(help="module:attribute of your Mainspring; the current folder is searched first.")],
    queues: Annotated[
        str | None, Parameter(help="Which queues to serve, with commas between. Else all that the app's jobs use.")
    ] = None,
    slots: Annotated[int, Parameter(help="How many runs at once, per process.")] = DEFAULTS.slots,
    processes: Annotated[int, Parameter(help="How many processes.")] = DEFAULTS.processes,
    autoscale: Annotated[
        str | None, Parameter(help="FEWEST:MOST processes, by how much work there is; instead of --processes.")
    ] = None,
    grace: Annotated[str, Parameter(help="How long a drain waits for handlers.")] = f"{DEFAULTS.grace:g}s",
    lease_time: Annotated[
        str, Parameter(help="How long a silent worker keeps its runs.")
    ] = f"{DEFAULTS.lease_time:g}s",
    keeper: Annotated[
        bool, Parameter(negative="--no-keeper", help="Keep the house in order beside the work.")
    ] = DEFAULTS.keeper,
    session: InSession,
) -> int:
    """Run workers in the foreground."""
    application = load_app(app)
    settings = WorkerSettings(
        queues=chosen_queues(queues, application.registry.queues),
        slots=slots,
        processes=processes,
        autoscale=None if autoscale is None else parse_bounds(autoscale, "autoscale"),
        grace=_seconds(grace, "grace"),
        lease_time=_seconds(lease_time, "lease-time"),
        keeper=keeper,
    )
    return await wiring.supervise(session.place(application), app, settings, say=session.say)


def chosen_queues(asked: str | None, used: list[str]) -> tuple[str, ...]:
    if asked is None:
        return tuple(used) or DEFAULTS.queues
    return tuple(dict.fromkeys(queue.strip() for queue in asked.split(",")))


def _seconds(text: str, option: str) -> float:
    span = parse_span(text, option)
    assert span is not None
    return span.total_seconds()

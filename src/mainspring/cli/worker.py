"""`mainspring worker`: run workers. `worker list` and `worker drain` are commands of their own under it."""

from typing import Annotated

from cyclopts import Parameter

from mainspring import wiring
from mainspring.app.loading import load_app
from mainspring.cli.command import InSession, command
from mainspring.cli.parsing import parse_bounds, parse_span, parse_weights, parse_words
from mainspring.worker.settings import WorkerSettings

DEFAULTS = WorkerSettings()


@command("worker")
async def work(
    *,
    app: Annotated[str, Parameter(help="module:attribute of your Mainspring; the current folder is searched first.")],
    queues: Annotated[
        str | None,
        Parameter(
            help="Which queues to serve: mail,reports, or with weights: mail=3,reports=1. Else all the app uses."
        ),
    ] = None,
    labels: Annotated[str, Parameter(help="What this worker has, for runs that require it: gpu,eu.")] = "",
    slots: Annotated[int, Parameter(help="How many runs at once, per process.")] = DEFAULTS.slots,
    processes: Annotated[int, Parameter(help="How many processes.")] = DEFAULTS.processes,
    autoscale: Annotated[
        str | None, Parameter(help="FEWEST:MOST processes, by how much work there is; instead of --processes.")
    ] = None,
    grace: Annotated[str, Parameter(help="How long a drain waits for handlers.")] = f"{DEFAULTS.grace:g}s",
    lease_time: Annotated[
        str, Parameter(help="How long a silent worker keeps its runs.")
    ] = f"{DEFAULTS.lease_time:g}s",
    max_unsettled: Annotated[
        int, Parameter(help="How many results may wait to be settled, per process; then nothing more is claimed.")
    ] = DEFAULTS.max_unsettled,
    keeper: Annotated[
        bool, Parameter(negative="--no-keeper", help="Keep the house in order beside the work.")
    ] = DEFAULTS.keeper,
    session: InSession,
) -> int:
    """Run workers in the foreground.

    SIGTERM or Ctrl-C drains: nothing new is claimed, what runs may finish, the
    rest goes back in line at once. A second signal hurries.

    Examples:
      mainspring worker --app shop.jobs:app
      mainspring worker --app shop.jobs:app --queues mail,default --processes 2
      mainspring worker --app shop.jobs:app --autoscale 1:8
      mainspring worker --app shop.jobs:app --queues mail=3,reports=1 --labels gpu,eu
      mainspring worker list
    """
    application = load_app(app)
    chosen = chosen_queues(queues, application.registry.queues)
    settings = WorkerSettings(
        queues=tuple(chosen),
        weights=weights_of(chosen),
        labels=parse_words(labels),
        slots=slots,
        processes=processes,
        autoscale=None if autoscale is None else parse_bounds(autoscale, "autoscale"),
        grace=_seconds(grace, "grace"),
        lease_time=_seconds(lease_time, "lease-time"),
        max_unsettled=max_unsettled,
        keeper=keeper,
    )
    session.say(announcement(app, settings))
    return await wiring.supervise(session.place(application), app, settings, say=session.say)


work.command("mainspring.cli.worker_list:list_workers", name="list", help="List workers.")
work.command("mainspring.cli.worker_drain:drain", name="drain", help="Ask workers to finish and end.")


def announcement(app: str, settings: WorkerSettings) -> str:
    """What is about to run: whoever started it in a terminal sees nothing else as long as all goes well."""
    fewest, most = settings.autoscale or (settings.processes, settings.processes)
    number = str(most) if fewest == most else f"{fewest} to {most}"
    return f"{number} worker process{'' if most == 1 else 'es'} for {app}; Ctrl-C stops"


def chosen_queues(asked: str | None, used: list[str]) -> dict[str, int | None]:
    """The queues to serve, each with its weight if one was given."""
    if asked is None:
        return dict.fromkeys(used or DEFAULTS.queues)
    return parse_weights(asked, "queues")


def weights_of(chosen: dict[str, int | None]) -> dict[str, int]:
    """With a weight for one of them, the others weigh 1; without any, nothing is weighed."""
    if all(weight is None for weight in chosen.values()):
        return {}
    return {queue: 1 if weight is None else weight for queue, weight in chosen.items()}


def _seconds(text: str, option: str) -> float:
    span = parse_span(text, option)
    assert span is not None
    return span.total_seconds()

"""`mainspring worker`: run workers, list them, drain them."""

from collections.abc import Sequence
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.text import Text

from mainspring import wiring
from mainspring.app.loading import load_app
from mainspring.app.logs import log_from
from mainspring.app.mainspring import Mainspring
from mainspring.cli.command import Invocation, command
from mainspring.cli.parsing import is_beginning_of_id, parse_bounds, parse_span, parse_weights, parse_words, whole_id
from mainspring.cli.tables import Column, fitted
from mainspring.cli.text import as_span, safe
from mainspring.errors import InvalidInput, WorkerNotFound
from mainspring.model.payload import quoted
from mainspring.model.worker import WorkerState, WorkerSummary
from mainspring.worker.settings import WorkerSettings

DEFAULTS = WorkerSettings()

Threads = Annotated[
    int | None,
    Parameter(help="How many of these runs may be in a thread (def), per process. Else 4 for each core, at most 32."),
]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"] | None,
    Parameter(help="From which level on the log is written. Else MAINSPRING_LOG_LEVEL, else info."),
]


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
    threads: Threads = None,
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
        bool, Parameter(negative="--no-keeper", help="Promote what is due, rescue, expire and prune, beside the work.")
    ] = DEFAULTS.keeper,
    log_level: LogLevel = None,
    invocation: Invocation,
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
    if log_level is not None:
        log_from(log_level)
    application = load_with_jobs(app)
    chosen = chosen_queues(queues, application.registry.queues)
    settings = WorkerSettings(
        queues=tuple(chosen),
        weights=weights_of(chosen),
        labels=parse_words(labels),
        slots=slots,
        threads=threads,
        processes=processes,
        autoscale=None if autoscale is None else parse_bounds(autoscale, "autoscale"),
        grace=_seconds(grace, "grace"),
        lease_time=_seconds(lease_time, "lease-time"),
        max_unsettled=max_unsettled,
        keeper=keeper,
    )
    invocation.say(announcement(app, settings))
    return await wiring.supervise(invocation.location(application), app, settings, say=invocation.say)


work.command("mainspring.cli.workers:list_workers", name="list", help="List workers.")
work.command("mainspring.cli.workers:drain", name="drain", help="Ask workers to finish and end.")


def load_with_jobs(app: str) -> Mainspring:
    """The application; refused without jobs, for its workers would wait for ever and nobody would know why."""
    application = load_app(app)
    if not application.registry.names:
        raise InvalidInput(
            f"The application {quoted(app)} has no jobs, so its workers would have nothing to do.",
            code="no-jobs",
            hint="Define some with @app.job; if they are in other modules, import those where the application is made.",
            field="app",
            value=quoted(app),
        )
    return application


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


COLOURS = {"live": "green", "lost": "red"}


@command("list")
async def list_workers(
    *,
    ended_within: Annotated[str, Parameter(help="Show ended workers too, up to so long after their end.")] = "1h",
    invocation: Invocation,
) -> None:
    """List workers: the living, and those that ended lately.

    Where there is no room for ids, their beginnings are shown, which drain takes as
    well; -o json has them whole.

    Examples:
      mainspring worker list
      mainspring worker list --ended-within 1d -o json
    """
    span = parse_span(ended_within, "ended-within")
    assert span is not None
    async with invocation.client() as client:
        workers = await client.workers.list(ended_within=span.total_seconds())
    if invocation.wants_json:
        invocation.print_json({"workers": workers})
    elif workers:
        invocation.print_lines(lines_of(workers, invocation.room))
    else:
        invocation.print("No workers. Start some: mainspring worker --app module:app")


WORKERS = (
    Column("worker", is_id=True),
    Column("state"),
    Column("host", least=16),
    Column("pid", is_number=True, leave_out=1),
    Column("queues", least=12),
    Column("labels", least=8, leave_out=3),
    Column("slots", is_number=True),
    Column("unsettled", is_number=True, leave_out=2),
    Column("heartbeat"),
    Column("started", leave_out=4),
    Column("version", leave_out=5),
)


def lines_of(workers: Sequence[WorkerSummary], room: int | None) -> list[Text]:
    return fitted(WORKERS, [_row(worker) for worker in workers], room)


def _row(worker: WorkerSummary) -> list[Text]:
    age = (worker.heartbeat_at - worker.started_at).total_seconds() + worker.silent_seconds
    return [
        Text(str(worker.id)),
        Text(worker.state, style=COLOURS.get(worker.state, "dim")),
        Text(safe(worker.host, 60)),
        Text(str(worker.pid)),
        Text(safe(", ".join(worker.queues), 60)),
        Text(safe(", ".join(worker.labels), 60)),
        Text(str(worker.slots)),
        # What a crash would repeat; red while it cannot be settled.
        Text(f"{worker.unsettled:,}", style="" if worker.unsettled_since is None else "red"),
        Text(_ago(worker.silent_seconds)),
        Text(_ago(age)),
        Text(safe(worker.version)),
    ]


def _ago(seconds: float) -> str:
    """The first unit only: 14 min ago."""
    number, unit = as_span(max(0.0, seconds)).split()[:2]
    return f"{number} {unit} ago"


@command("drain")
async def drain(
    worker_id: Annotated[str | None, Parameter(name="id", help="The worker's id, or its beginning.")] = None,
    /,
    *,
    host: Annotated[str | None, Parameter(help="All live workers of this host instead.")] = None,
    reason: Annotated[str, Parameter(help="Why; kept in the audit.")] = "",
    invocation: Invocation,
) -> None:
    """Ask workers to finish and end.

    The worker's supervisor hears of it at its next heartbeat, lets it finish within its
    grace, and does not replace it. A supervisor without workers ends.

    Examples:
      mainspring worker drain ID
      mainspring worker drain --host node-7 --reason "kernel upgrade"
    """
    if (worker_id is None) == (host is None):
        raise InvalidInput("Name one worker, or a host with --host.", code="worker-or-host", field="id")
    async with invocation.client() as client:
        ids = await _workers_of(client, host) if worker_id is None else [await _whole(client, worker_id)]
        for each in ids:
            await client.workers.drain(each, reason=reason)
    if invocation.wants_json:
        invocation.print_json({"draining": ids})
    else:
        invocation.print(*(f"asked {safe(each)} to drain" for each in ids))


async def _whole(client: Mainspring, worker_id: str) -> str:
    if not is_beginning_of_id(worker_id):
        return worker_id
    return whole_id(worker_id, [worker.id for worker in await _live_workers(client)])


async def _live_workers(client: Mainspring) -> list[WorkerSummary]:
    workers = await client.workers.list(ended_within=0)
    return [worker for worker in workers if worker.state is WorkerState.LIVE]


async def _workers_of(client: Mainspring, host: str | None) -> list[str]:
    ids = [str(worker.id) for worker in await _live_workers(client) if worker.host == host]
    if not ids:
        raise WorkerNotFound(
            f"There is no live worker on host {safe(host, 60)}.",
            hint="`mainspring worker list` shows those there are.",
            field="host",
        )
    return ids

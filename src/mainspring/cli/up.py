"""`mainspring up`: database, workers, scheduler and keeper in the foreground, with a view of what they do."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Annotated

from cyclopts import Parameter

from mainspring import wiring
from mainspring.app.logs import log_from
from mainspring.app.mainspring import Mainspring
from mainspring.cli.activity import Watch
from mainspring.cli.command import Invocation, Repeatable, command
from mainspring.cli.parsing import parse_port, parse_words
from mainspring.cli.scheduler import apply_declared
from mainspring.cli.workers import DEFAULTS, LogLevel, Threads, announcement, chosen_queues, load_with_jobs, weights_of
from mainspring.errors import InvalidInput
from mainspring.store.embedded import EmbeddedServer
from mainspring.wiring import DatabaseLocation
from mainspring.worker.settings import WorkerSettings
from mainspring.worker.supervisor import stop_on_signals

NO_PORT = "the server was running before, without a port; it gets one when all who use it have ended"


@command("up")
async def up(
    *,
    app: Annotated[str, Parameter(help="module:attribute of your Mainspring; the current folder is searched first.")],
    submit: Annotated[
        tuple[str, ...],
        Repeatable,
        Parameter(help="Submit a run of this job at start; may be repeated."),
    ] = (),
    queues: Annotated[str | None, Parameter(help="Which queues to serve. Else all that the app's jobs use.")] = None,
    labels: Annotated[str, Parameter(help="What these workers have, for runs that require it: gpu,eu.")] = "",
    slots: Annotated[int, Parameter(help="How many runs at once, per process.")] = DEFAULTS.slots,
    threads: Threads = None,
    processes: Annotated[int, Parameter(help="How many worker processes.")] = DEFAULTS.processes,
    port: Annotated[
        str, Parameter(help="Open this TCP port of 127.0.0.1 to the embedded PostgreSQL, for psql and such.")
    ] = "none",
    log_level: LogLevel = None,
    invocation: Invocation,
) -> int:
    """Run the whole system in the foreground.

    Starts the embedded PostgreSQL (or uses the server at the URL), brings it to
    the shape we need, and runs workers and a scheduler. Ctrl-C drains and stops; a second Ctrl-C
    hurries. Started again, it goes on with the same data.

    Examples:
      mainspring up --app examples.hello:app
      mainspring up --app examples.hello:app --submit tick
      mainspring up --app shop.jobs:app --processes 2 --data-dir ./data
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
    )
    location = invocation.location(application)
    async with _store(location, parse_port(port), invocation) as store:
        await apply_declared(invocation, application)
        await _submit_at_start(invocation, application, submit)
        invocation.say(announcement(app, settings))
        watch = Watch(
            store.database,
            store.lanes,
            tenant_id=await _tenant_id(invocation, application),
            as_json=invocation.wants_json,
        )
        async with wiring.scheduler_in_process(store, invocation.clock):
            code = await _work_and_watch(store, location, app, settings, watch, invocation)
    invocation.say("stopped")
    return code


async def _work_and_watch(
    store: wiring.Store,
    location: DatabaseLocation,
    app: str,
    settings: WorkerSettings,
    watch: Watch,
    invocation: Invocation,
) -> int:
    def say(sentence: str) -> None:
        watch.clear()
        invocation.say(sentence)

    supervisor = wiring.supervisor(store, location, app, settings, say=say)
    stop_on_signals(supervisor)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, supervisor.stop)  # the terminal was closed
    watching = asyncio.create_task(watch.run())
    watching.add_done_callback(lambda task: None if task.cancelled() else supervisor.stop())  # nobody reads it any more
    try:
        return await supervisor.run()
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        watch.clear()


@asynccontextmanager
async def _store(location: DatabaseLocation, port: int | None, invocation: Invocation) -> AsyncIterator[wiring.Store]:
    """The database, started and migrated."""
    server = await _with_port(location, port, invocation)
    try:
        store = await wiring.open_store(location, invocation.say, migrates=True)
        try:
            yield store
        finally:
            await store.close()
    finally:
        if server is not None:
            await asyncio.to_thread(server.release)


async def _with_port(location: DatabaseLocation, port: int | None, invocation: Invocation) -> EmbeddedServer | None:
    """A first share in the embedded server that asks for a TCP port: those who join later get what runs."""
    if port is None:
        return None
    if location.data_directory is None:
        raise InvalidInput(
            "--port is for the embedded PostgreSQL, and a server was named by its URL.",
            code="invalid-port",
            hint="Leave out --port, or the URL.",
            field="port",
        )
    server = await asyncio.to_thread(EmbeddedServer.acquire, location.data_directory, tcp_port=port, say=invocation.say)
    url = server.tcp_dsn
    invocation.say(f"psql and other programs reach it by {url}" if url else NO_PORT)
    return server


async def _tenant_id(invocation: Invocation, application: Mainspring) -> int:
    """Whose runs are shown; refused if there is no such tenant."""
    async with invocation.client(application) as client:
        return client.actor.tenant


async def _submit_at_start(invocation: Invocation, application: Mainspring, names: tuple[str, ...]) -> None:
    if not names:
        return
    async with invocation.client(application) as client:
        for name in names:
            application.registry.find(name)  # raises if it is not one of its jobs
            run = await client.jobs.submit(name)
            invocation.say(f"submitted {name} as run {run.id}")

"""The commands there are, by name, and the options they share.

A command's module is imported when it is chosen: `mainspring --help` needs no database driver.
"""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Group, Parameter

from mainspring.cli.command import Invocation, command
from mainspring.cli.interrupt import raise_interrupts
from mainspring.cli.usage import check_whole_numbers
from mainspring.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

HELP = """\
Mainspring runs jobs for Python teams, on PostgreSQL.

Without a database URL it uses a private PostgreSQL of its own, in a directory of its own."""

EXAMPLES = """\
Examples:
  mainspring up --app shop.jobs:app             everything, in the foreground
  mainspring worker --app shop.jobs:app         workers only
  mainspring run submit greet --arg name=Ada    accept a run, print its id
  mainspring run show ID                        what happened to it
  mainspring run explain ID                     why it is not running
  mainspring run list --job greet --since 1h    what happened to all of them
  mainspring dead-letter requeue --job greet    try the dead ones again
  mainspring schedule list                      what recurs, and when next
  mainspring doctor                             is the database in good health?

Exit codes: 0 done, 1 refused or failed, 2 usage, 130 interrupted."""

commands = App(
    name="mainspring",
    help=HELP,
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=["--version"],
    config=check_whole_numbers,
)
commands.meta.group_parameters = Group("Options of every command", sort_key=99)

schedules = App(
    name="schedule", sort_key=3, help="Make schedules, pause and trigger them, see what they did.", help_epilogue=""
)
commands.command(schedules)

calendars = App(name="calendar", sort_key=3, help="Keep holidays and blackouts that schedules share.", help_epilogue="")
commands.command(calendars)

runs = App(name="run", sort_key=2, help="Submit runs and look after them.", help_epilogue="")
commands.command(runs)
dead_letters = App(name="dead-letter", sort_key=2, help="Requeue or purge runs out of attempts.", help_epilogue="")
commands.command(dead_letters)
jobs = App(name="job", sort_key=2, help="See jobs and how many of their runs are where.", help_epilogue="")
commands.command(jobs)
operations = App(name="operation", sort_key=2, help="See acts on many runs; resume them.", help_epilogue="")
commands.command(operations)
queues = App(name="queue", sort_key=2, help="See queues; pause and resume them.", help_epilogue="")
commands.command(queues)

limits = App(
    name="limit", sort_key=2, help="Say how many runs may execute at once, or start in a while.", help_epilogue=""
)
commands.command(limits)

breakers = App(
    name="breaker", sort_key=2, help="Let the runs of a job wait after failures; open and close.", help_epilogue=""
)
commands.command(breakers)

backlogs = App(name="backlog", sort_key=2, help="Say how many runs may wait, and what gives way.", help_epilogue="")
commands.command(backlogs)

flows = App(name="flow", sort_key=2, help="See graphs of runs; cancel and retry them as one.", help_epilogue="")
commands.command(flows)

tenants = App(name="tenant", sort_key=2, help="Make tenants; say how large a share each has.", help_epilogue="")
commands.command(tenants)

chains = App(name="chain", sort_key=2, help="See which jobs follow which; pause that.", help_epilogue="")
commands.command(chains)

# Where each command is, what help says about it, and in which order.
for parent, name, place, summary, order in (
    (commands, "up", "up:up", "Run the whole system in the foreground.", 0),
    (commands, "worker", "workers:work", "Run workers; list or drain them.", 1),
    (commands, "scheduler", "scheduler:run_scheduler", "Fire schedules.", 1),
    (commands, "top", "top:top", "Watch queues, workers, schedulers and failures, live.", 2),
    (commands, "migrate", "database:migrate", "Bring the schema up to date.", 4),
    (commands, "restored", "database:restored", "Make a database safe that was restored from a backup.", 4),
    (commands, "doctor", "database:doctor", "Check the database's health.", 5),
    (commands, "grants", "database:grants", "Print what to grant to a role of the database.", 5),
    (commands, "completion", "commands:completion", "Print a script for your shell to complete commands.", 6),
    (runs, "submit", "run_submit:submit", "Accept a run of a job; print its id.", 0),
    (runs, "show", "runs:show", "Show a run: its state, attempts and timeline.", 1),
    (runs, "explain", "run_explain:explain", "Say why a run is not running.", 1),
    (runs, "watch", "run_logs:watch", "Watch a run: its progress and its log, live.", 1),
    (runs, "logs", "run_logs:logs", "Show what a run logged.", 1),
    (runs, "list", "runs:list_runs", "List runs, newest first.", 1),
    (runs, "cancel", "run_acts:cancel", "End waiting runs; ask running ones to stop.", 2),
    (runs, "rerun", "run_acts:rerun", "Requeue a dead run; run one that ended again.", 2),
    (runs, "change", "run_acts:change", "Change runs that have not started.", 2),
    (dead_letters, "list", "dead_letters:list_dead", "List runs out of attempts.", 0),
    (dead_letters, "show", "dead_letters:show", "Show one: its last error, attempts and arguments.", 1),
    (dead_letters, "requeue", "dead_letters:requeue", "Put them back in line.", 2),
    (dead_letters, "purge", "dead_letters:purge", "End them for good.", 3),
    (jobs, "list", "jobs:list_jobs", "List jobs: version, queue, runs by state.", 0),
    (jobs, "show", "jobs:show", "Show a job: its policies and latest runs.", 1),
    (operations, "list", "operations:list_operations", "List operations, and how far they got.", 0),
    (operations, "resume", "operations:resume", "Go on with one that was cut off.", 1),
    (queues, "list", "queues:list_queues", "List queues: depth, age, rates, wanted slots.", 0),
    (queues, "pause", "queues:pause", "Stop claiming from a queue.", 1),
    (queues, "pressure", "queues:pressure", "Show how much is in line, against the marks of a queue.", 1),
    (queues, "marks", "queues:set_marks", "Set how many runs may be in line before others wait.", 1),
    (queues, "resume", "queues:resume", "Claim from a queue again.", 2),
    (limits, "list", "limits:list_limits", "List limits: who holds a slot, who waits.", 0),
    (limits, "show", "limits:show", "Show a limit: each value of its key.", 0),
    (limits, "set", "limits:set_limit", "Let at most so many runs execute at once, or start.", 1),
    (limits, "remove", "limits:remove", "Remove a limit.", 2),
    (breakers, "list", "breakers:list_breakers", "List circuit breakers: open or closed, who waits.", 0),
    (breakers, "show", "breakers:show", "Show a breaker: where it is open, and its history.", 0),
    (breakers, "set", "breakers:set_breaker", "Let runs of a job wait after so many failures.", 1),
    (breakers, "open", "breakers:open_breaker", "Let the runs of a job wait.", 1),
    (breakers, "close", "breakers:close_breaker", "Let waiting runs of a job go on.", 1),
    (breakers, "remove", "breakers:remove", "Remove a breaker.", 2),
    (backlogs, "list", "backlogs:list_backlogs", "List backlog caps, and how many runs wait.", 0),
    (backlogs, "show", "backlogs:show", "Show a backlog cap: each value of its key.", 0),
    (backlogs, "set", "backlogs:set_backlog", "Let at most so many runs wait.", 1),
    (backlogs, "remove", "backlogs:remove", "Remove a backlog cap.", 2),
    (flows, "list", "flows:list_flows", "List flows, newest first.", 0),
    (flows, "show", "flows:show", "Show a flow as a tree, or as Mermaid.", 0),
    (flows, "wait", "flows:wait", "Wait until a flow is over.", 1),
    (flows, "cancel", "flows:cancel", "Cancel all of a flow that waits or runs.", 2),
    (flows, "retry", "flows:retry", "Run again what did not succeed.", 2),
    (tenants, "list", "tenants:list_tenants", "List tenants: weight, what waits, what runs.", 0),
    (tenants, "show", "tenants:show", "Show a tenant.", 0),
    (tenants, "create", "tenants:create", "Make a tenant.", 1),
    (tenants, "set", "tenants:set_weight", "Give a tenant another share of the workers.", 1),
    (chains, "list", "chains:list_chains", "List chains: which job follows which.", 0),
    (chains, "pause", "chains:pause", "Let runs of a job not follow another one's.", 1),
    (chains, "resume", "chains:resume", "Let them follow again.", 1),
    (chains, "remove", "chains:remove", "Remove a chain that no code declares.", 2),
    (schedules, "create", "schedule_create:create", "Make a schedule, or replace one.", 0),
    (schedules, "update", "schedule_update:update", "Change some of a schedule.", 0),
    (schedules, "apply", "scheduler:apply", "Let schedules in code take effect.", 0),
    (schedules, "list", "schedule_lists:list_schedules", "List schedules: state, next instant, job.", 1),
    (schedules, "show", "schedule_show:show", "Show a schedule: what it means, what comes, what happened.", 1),
    (schedules, "history", "schedule_history:history", "Show what fired, what was missed, and why.", 1),
    (schedules, "versions", "schedule_lists:versions", "Show what a schedule was before.", 1),
    (schedules, "forecast", "schedule_forecast:show", "Show how many runs will be due, and when most are.", 1),
    (schedules, "pause", "schedule_acts:pause", "Let nothing of a schedule fire.", 2),
    (schedules, "resume", "schedule_acts:resume", "Let a paused schedule go on.", 2),
    (schedules, "trigger", "schedule_acts:trigger", "Submit one run of a schedule now.", 2),
    (schedules, "backfill", "schedule_backfill:backfill", "Make runs for instants that have passed.", 2),
    (schedules, "rollback", "schedule_acts:rollback", "Go back to an older version.", 2),
    (schedules, "delete", "schedule_acts:delete", "Remove a schedule.", 2),
    (schedules, "explain", "schedules:explain", "Say what a schedule means.", 3),
    (schedules, "preview", "schedule_preview:show", "Show when a schedule will fire.", 4),
    (schedules, "diff", "schedule_diff:show", "Compare two versions of a schedule.", 5),
    (schedules, "load", "schedule_load:show", "Count how many schedules fall on each minute.", 6),
    (calendars, "create", "calendars:create", "Store a calendar, or replace one.", 0),
    (calendars, "import", "calendars:import_", "Store the days of an iCalendar file.", 0),
    (calendars, "list", "calendars:list_calendars", "List calendars, and which schedules use them.", 1),
    (calendars, "show", "calendars:show", "Show a calendar: its days, who uses it.", 1),
    (calendars, "delete", "calendars:delete", "Remove a calendar that no schedule uses.", 2),
):
    parent.command(f"mainspring.cli.{place}", name=name, help=summary, sort_key=order)


@command("completion")
def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Which shell.")], /) -> None:
    """Print a completion script for a shell.

    Examples:
      mainspring completion bash >> ~/.bash_completion
      mainspring completion zsh > ~/.zfunc/_mainspring   (with ~/.zfunc in fpath)
      mainspring completion fish > ~/.config/fish/completions/mainspring.fish
    """
    print(commands.generate_completion(prog_name="mainspring", shell=shell))


@commands.meta.default
def _launch(
    *words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    database_url: Annotated[
        str | None, Parameter(help="A PostgreSQL server. Else MAINSPRING_DATABASE_URL, else the embedded one.")
    ] = None,
    data_dir: Annotated[
        str | None, Parameter(help="Where the embedded PostgreSQL keeps its data. Else MAINSPRING_DATA_DIR.")
    ] = None,
    tenant: Annotated[str | None, Parameter(help="Whom to act for. Else MAINSPRING_TENANT, else default.")] = None,
    output: Annotated[
        Literal["table", "json", "ics"],
        Parameter(name=["--output", "-o"], help="For people, one JSON document, or (schedule preview) iCalendar."),
    ] = "table",
) -> int:
    chosen, bound, injected = commands.parse_args(words, exit_on_error=False, print_error=False)
    if "invocation" in injected:
        from mainspring.app.logs import log_to_stderr
        from mainspring.model.actor import TENANT_VARIABLE
        from mainspring.model.job import checked_name

        log_to_stderr(as_json=output == "json")
        if output == "ics" and words[:2] != ("schedule", "preview"):
            raise InvalidInput("Only schedule preview writes iCalendar.", code="invalid-output", field="output")
        if tenant is not None:
            os.environ[TENANT_VARIABLE] = checked_name(tenant, "tenant")  # for the application, and its workers
        bound.arguments["invocation"] = Invocation(
            database_url=database_url, data_directory=data_dir, tenant=tenant, output=output
        )
    raise_interrupts()
    answer = chosen(*bound.args, **bound.kwargs)
    if inspect.iscoroutine(answer):
        import asyncio

        answer = asyncio.run(answer)
    return answer if isinstance(answer, int) else 0


def launch(arguments: Sequence[str]) -> int:
    code: int = commands.meta(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
    return code or 0

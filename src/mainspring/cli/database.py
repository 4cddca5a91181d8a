"""`mainspring migrate`, `restored`, `doctor` and `grants`: the database itself, and who may do what in it."""

import sys
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from mainspring.app.loading import load_app
from mainspring.app.mainspring import Mainspring
from mainspring.app.stored_arguments import unfit_schedules
from mainspring.cli.bulk import confirm
from mainspring.cli.command import Flag, Invocation, command
from mainspring.cli.text import counted, safe
from mainspring.control.doctor import examine, not_reached
from mainspring.control.findings import Finding, Level, ok, problem, warning
from mainspring.control.restored import Outlook, Restored
from mainspring.errors import StoreError
from mainspring.store import health
from mainspring.store.grants import RoleKind, statements
from mainspring.store.migrate import Migration, known_migrations
from mainspring.store.migrate import migrate as apply


@command("migrate")
async def migrate(
    *,
    dry_run: Annotated[bool, Flag, Parameter(help="Only say what would be applied.")] = False,
    invocation: Invocation,
) -> None:
    """Bring the database to the shape this program needs.

    Any number of these may run at once, and running it again changes nothing.

    Examples:
      mainspring migrate --database-url postgresql://me@db/jobs --dry-run
      mainspring migrate --database-url postgresql://me@db/jobs
    """
    async with invocation.database() as (_, connection):
        before = await health.applied_migrations(connection)
        missing = [each for each in known_migrations() if each.version not in before]
        if not dry_run:
            missing = await apply(connection, say=invocation.say)
    _print(invocation, missing, already=len(before), dry_run=dry_run)


def _print(invocation: Invocation, migrations: list[Migration], *, already: int, dry_run: bool) -> None:
    if invocation.wants_json:
        named = [_named(each) for each in migrations]
        invocation.print_json({"pending" if dry_run else "applied": named, "applied_before": already})
        return
    for each in migrations:
        invocation.print(f"{'would apply' if dry_run else 'applied'} {each.version:04} {each.name.replace('_', ' ')}")
    if not migrations:
        invocation.print(f"up to date: {already} migration{'' if already == 1 else 's'} applied before")


def _named(migration: Migration) -> dict[str, Any]:
    return {"version": migration.version, "name": migration.name}


@command("restored")
async def restored(
    *,
    reason: Annotated[str, Parameter(help="Why, and which backup; kept in the audit.")],
    yes: Annotated[bool, Flag, Parameter(help="Do not ask.")] = False,
    dry_run: Annotated[bool, Flag, Parameter(help="Only say what there is to do.")] = False,
    force: Annotated[bool, Flag, Parameter(help="Declare lost also workers that still send heartbeats.")] = False,
    invocation: Invocation,
) -> None:
    """Make a database safe to work on that was restored from a backup.

    Run it after a restore and after migrate, before the first worker starts: runs
    that were held by workers of the backup go back in line, fences become higher
    than any that was handed out before, and the installation gets a new id. If it
    is cut off, run it again. See docs/how-to/backup-and-restore.md.

    Examples:
      mainspring restored --reason "lost disk, backup of 3:00" --dry-run
      mainspring restored --reason "lost disk, backup of 3:00" --yes
    """
    async with invocation.client() as client:
        outlook = await (await client.services()).restoration.look()
        if dry_run:
            _print_outlook(invocation, outlook)
            return
        for sentence in _sentences(outlook):
            invocation.say(sentence)
        if not yes:
            confirm(invocation, "Was this database restored from a backup?")
        if outlook.workers and not force:
            invocation.say(f"watching {outlook.watch_seconds:.0f} s for heartbeats of these workers")
        done = await _work(invocation, client, reason, force=force)
    _print_end(invocation, done)


def _print_outlook(invocation: Invocation, outlook: Outlook) -> None:
    if invocation.wants_json:
        invocation.print_json(outlook)
    else:
        invocation.print(*_sentences(outlook))


def _sentences(outlook: Outlook) -> tuple[str, ...]:
    return (
        f"{counted(outlook.workers, 'worker')} listed as live: declared lost, unless they send a heartbeat",
        f"{counted(outlook.running, 'run')} held by workers: back in line, or lost if delivered at most once",
        f"{counted(outlook.waiting, 'waiting run')}: fences lifted above any that was handed out",
        "this installation: a new id",
    )


async def _work(invocation: Invocation, client: Mainspring, reason: str, *, force: bool) -> Restored:
    """Do it, and show how far it is."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    is_shown = sys.stderr.isatty() and not invocation.wants_json
    restoration = (await client.services()).restoration
    done = Restored()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not is_shown) as progress:
        task = progress.add_task("lifting fences", total=None)
        async for done in restoration.work(client.actor, reason=reason, force=force):
            progress.update(task, completed=done.looked_at, total=done.waiting if done.fence else None)
    return done


def _print_end(invocation: Invocation, done: Restored) -> None:
    if invocation.wants_json:
        invocation.print_json(done)
        return
    ends = ((done.cancelled, "cancelled"), (done.lost, "lost"), (done.buried, "dead"))
    others = "".join(f", {number:,} {what}" for number, what in ends if number)
    invocation.print(
        f"{counted(done.workers, 'worker')} lost; {counted(done.rescued, 'run')} back in line{others}",
        f"{counted(done.lifted, 'fence')} lifted to {done.fence:,}",
        f"this installation is now {done.installation}",
    )


MARKS = {Level.OK: ("ok", "green"), Level.WARNING: ("warning", "yellow"), Level.PROBLEM: ("problem", "bold red")}


@command("doctor")
async def doctor(
    *,
    app: Annotated[str | None, Parameter(help="module:name of the app whose schedules' arguments are checked.")] = None,
    invocation: Invocation,
) -> int:
    """Check the database, and say what to do.

    Looks at the server's version and settings, schema, permissions, search path,
    clocks, long transactions, lanes, history partitions, workers, schedulers,
    schedules that cannot be decided, and dead rows. With --app also whether the
    arguments that schedules keep still fit the code. Exits with 1 if there is a
    problem.

    Examples:
      mainspring doctor
      mainspring doctor --database-url postgresql://me@db/jobs -o json
      mainspring doctor --app shop.jobs:app
    """
    application = None if app is None else load_app(app)
    try:
        async with invocation.database() as (_, connection):
            findings = await examine(connection, invocation.clock)
        if application is not None:
            findings.append(await _arguments(invocation, application))
    except StoreError as error:
        findings = [not_reached(error)]
    worst = Level.OK
    for level in (Level.WARNING, Level.PROBLEM):
        if any(finding.level is level for finding in findings):
            worst = level
    if invocation.wants_json:
        invocation.print_json({"verdict": worst, "findings": findings})
    else:
        invocation.print(_table(findings), "", _verdict(invocation, findings, worst))
    return 1 if worst is Level.PROBLEM else 0


async def _arguments(invocation: Invocation, application: Mainspring) -> Finding:
    """Whether the arguments that schedules keep fit the code; a schema that does not serve us is said elsewhere."""
    try:
        async with invocation.client(application) as client:
            unfit = await unfit_schedules(client)
    except StoreError as error:
        return warning("arguments", f"could not be looked at: {error.message}", error.hint or "")
    if not unfit:
        return ok("arguments", "those of all schedules fit the code")
    first, names = unfit[0], ", ".join(each.name for each in unfit[:3]) + (", …" if len(unfit) > 3 else "")
    says = f"those of {counted(len(unfit), 'schedule')} do not fit the code: {names} ({first.problem})"
    return problem("arguments", says, "Their runs become dead letters: replace them, or take the old arguments, too.")


def _table(findings: list[Finding]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for finding in findings:
        word, style = MARKS[finding.level]
        table.add_row(Text(word, style=style), finding.check, Text(safe(finding.says)))
        if finding.remedy:
            table.add_row("", "", Text(f"→ {safe(finding.remedy)}"))
    return table


def _verdict(invocation: Invocation, findings: list[Finding], worst: Level) -> Text:
    if worst is Level.OK:
        return Text("In good health.", style="green")
    counts = ((level, sum(finding.level is level for finding in findings)) for level in (Level.PROBLEM, Level.WARNING))
    words = [f"{count} {level}{'s' if count > 1 else ''}" for level, count in counts if count]
    return Text(", ".join(words) + ".", style=MARKS[worst][1])


@command("grants")
def grants(
    role: Annotated[str, Parameter(help="The name of an existing role of the database.")],
    /,
    *,
    for_: Annotated[
        Literal["worker", "scheduler", "client", "reader", "all"], Parameter(name="--for", help="What the role is for.")
    ] = "all",
    invocation: Invocation,
) -> None:
    """Print the SQL that gives a role what it needs, and nothing more.

    A worker executes runs and keeps the house; a scheduler fires schedules; a
    client submits runs, acts on them and makes schedules; a reader only looks.
    Handlers that submit runs make a worker a client too, and `mainspring up` is
    all of them: that is the default.

    Needs no database. The role must exist; run the SQL as the role that migrates,
    or as an administrator, and again after each migrate.

    Examples:
      mainspring grants shop_worker --for worker | psql postgresql://me@db/jobs
      mainspring grants dashboard --for reader -o json
    """
    wanted = statements(role, RoleKind if for_ == "all" else [RoleKind(for_)])
    if invocation.wants_json:
        invocation.print_json(wanted)
        return
    # Not through the invocation: what it prints is for people, and a name must arrive as it is.
    print(
        f"-- For {'all that programs of Mainspring do' if for_ == 'all' else f'a {for_} of Mainspring'}."
        " Run it again after each `mainspring migrate`."
    )
    for statement in wanted:
        print(f"{statement};")

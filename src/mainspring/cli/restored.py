"""`mainspring restored`: tell Mainspring that its database was restored from a backup."""

import sys
from typing import Annotated

from cyclopts import Parameter

from mainspring.app.mainspring import Mainspring
from mainspring.cli.bulk import confirm
from mainspring.cli.command import Flag, InSession, command
from mainspring.cli.session import Session
from mainspring.control.restored import Outlook, Restored


@command("restored")
async def restored(
    *,
    reason: Annotated[str, Parameter(help="Why, and which backup; kept in the audit.")],
    yes: Annotated[bool, Flag, Parameter(help="Do not ask.")] = False,
    dry_run: Annotated[bool, Flag, Parameter(help="Only say what there is to do.")] = False,
    force: Annotated[bool, Flag, Parameter(help="Declare lost also workers that still beat.")] = False,
    session: InSession,
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
    async with session.client() as client:
        outlook = await (await client.services()).restoration.look()
        if dry_run:
            _print_outlook(session, outlook)
            return
        for sentence in _sentences(outlook):
            session.say(sentence)
        if not yes:
            confirm(session, "Was this database restored from a backup?")
        if outlook.workers and not force:
            session.say(f"watching for {outlook.watch_seconds:.0f} s whether one of these workers beats")
        done = await _work(session, client, reason, force=force)
    _print_end(session, done)


def _print_outlook(session: Session, outlook: Outlook) -> None:
    if session.wants_json:
        session.print_json(outlook)
    else:
        session.print(*_sentences(outlook))


def _sentences(outlook: Outlook) -> tuple[str, ...]:
    return (
        f"{_number(outlook.workers, 'worker')} listed as live: declared lost, unless they beat",
        f"{_number(outlook.running, 'run')} held by workers: back in line, or lost if delivered at most once",
        f"{_number(outlook.waiting, 'waiting run')}: fences lifted above any that was handed out",
        "this installation: a new id",
    )


async def _work(session: Session, client: Mainspring, reason: str, *, force: bool) -> Restored:
    """Do it, and show how far it is."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    is_shown = sys.stderr.isatty() and not session.wants_json
    restoration = (await client.services()).restoration
    done = Restored()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not is_shown) as progress:
        task = progress.add_task("lifting fences", total=None)
        async for done in restoration.work(actor=client.submitted_by, reason=reason, force=force):
            progress.update(task, completed=done.looked_at, total=done.waiting if done.fence else None)
    return done


def _print_end(session: Session, done: Restored) -> None:
    if session.wants_json:
        session.print_json(done)
        return
    ends = ((done.cancelled, "cancelled"), (done.lost, "lost"), (done.buried, "dead"))
    others = "".join(f", {number:,} {what}" for number, what in ends if number)
    session.print(
        f"{_number(done.workers, 'worker')} lost; {_number(done.rescued, 'run')} back in line{others}",
        f"{_number(done.lifted, 'fence')} lifted to {done.fence:,}",
        f"this installation is now {done.installation}",
    )


def _number(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"

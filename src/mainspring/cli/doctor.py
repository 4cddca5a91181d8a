"""`mainspring doctor`: is the database in good health, and if not, what to do?"""

from rich.table import Table
from rich.text import Text

from mainspring.cli.command import InSession, command
from mainspring.cli.session import Session
from mainspring.cli.text import safe
from mainspring.clock import SystemClock
from mainspring.control.doctor import Finding, Level, examine, not_reached
from mainspring.errors import StoreError

MARKS = {Level.OK: ("ok", "green"), Level.WARNING: ("warning", "yellow"), Level.PROBLEM: ("problem", "bold red")}


@command("doctor")
async def doctor(*, session: InSession) -> int:
    """Check the database, and say what to do.

    Looks at the server's version and settings, schema, permissions, search path,
    clocks, long transactions, lanes, history partitions, workers and dead rows.
    Exits with 1 if there is a problem.

    Examples:
      mainspring doctor
      mainspring doctor --database-url postgresql://me@db/jobs -o json
    """
    try:
        async with session.database() as (_, connection):
            findings = await examine(connection, SystemClock())
    except StoreError as error:
        findings = [not_reached(error)]
    worst = Level.OK
    for level in (Level.WARNING, Level.PROBLEM):
        if any(finding.level is level for finding in findings):
            worst = level
    if session.wants_json:
        session.print_json({"verdict": worst, "findings": findings})
    else:
        session.print(_table(findings), "", _verdict(session, findings, worst))
    return 1 if worst is Level.PROBLEM else 0


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


def _verdict(session: Session, findings: list[Finding], worst: Level) -> Text:
    if worst is Level.OK:
        return Text("In good health.", style="green")
    counts = ((level, sum(finding.level is level for finding in findings)) for level in (Level.PROBLEM, Level.WARNING))
    words = [f"{count} {level}{'s' if count > 1 else ''}" for level, count in counts if count]
    return Text(", ".join(words) + ".", style=MARKS[worst][1])

"""`mainspring schedule explain`: what a schedule means, in its canonical form and in words."""

from typing import Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from mainspring.cli.command import InSession, command
from mainspring.cli.schedules import (
    CalendarFiles,
    From,
    JobId,
    Zone,
    as_local,
    as_stamp,
    as_utc,
    moment,
    read_calendars,
    read_words,
)
from mainspring.cli.text import as_span, safe
from mainspring.schedule.zones import TZDATA_VERSION


@command("explain")
def explain(
    *text: Annotated[str, Parameter(help="The schedule, in one or several words.", required=True)],
    zone: Zone = "UTC",
    from_: From = None,
    calendar: CalendarFiles = (),
    job: JobId = "",
    session: InSession,
) -> None:
    """Say what a schedule means.

    A schedule is a cron expression, an interval, one or several instants, a
    recurrence rule, plain English, or a union of these. Quote what the shell
    would read, such as *.

    Examples:
      mainspring schedule explain '*/15 8-17 * * MON-FRI'
      mainspring schedule explain last friday of the month at 18:00
      mainspring schedule explain '0 9 * * * not=off' --calendar off=holidays.ics
      mainspring schedule explain 'RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU' -o json
    """
    now = moment(from_, zone)
    calendars = read_calendars(calendar, zone=zone, now=now, session=session)
    schedule = read_words(text, zone=zone, now=now, calendars=calendars)
    following = schedule.next_after(now, job=job)
    if session.wants_json:
        session.print_json(
            {
                "text": schedule.text,
                "words": schedule.words,
                "schedule": schedule.as_document(),
                "next_at": None if following is None else as_stamp(following.due_at),
                "tzdata": TZDATA_VERSION,
            }
        )
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("schedule", Text(safe(schedule.text), style="bold"))
    table.add_row("in words", Text(safe(schedule.words)))
    if following is None:
        table.add_row("next", Text("never again", style="yellow"))
    else:
        local = following.due_at.astimezone(schedule.zone_info)
        table.add_row("next", f"{as_local(local)}, in {as_span((following.due_at - now).total_seconds())}")
        if schedule.zone != "UTC":
            table.add_row("", f"{as_utc(following.due_at)}")
    session.print(table)

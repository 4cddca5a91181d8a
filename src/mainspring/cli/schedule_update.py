"""`mainspring schedule update`: change some of a schedule; the rest stays."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

from cyclopts import Group, Parameter

from mainspring.app.loading import load_app
from mainspring.cli.command import Invocation, command
from mainspring.cli.parsing import parse_instant, parse_payload, parse_span
from mainspring.cli.run_submit import Arg, CheckedBy, JobOptions, Payload
from mainspring.cli.schedule_acts import ExpectedVersion, Name, print_changed
from mainspring.cli.schedule_create import (
    NOT_CHECKED,
    EndsAt,
    MaxRuns,
    Overlap,
    PauseAfterFailures,
    Rule,
    Spread,
    StartsAt,
    WhenText,
    Window,
)
from mainspring.cli.schedule_show import COMING
from mainspring.cli.schedules import CalendarFiles, Zone, read_calendars
from mainspring.errors import InvalidInput
from mainspring.schedule.deciding import CatchUp, CatchUpRule


@Parameter(name="*", group=Group("When", sort_key=0))
@dataclass(frozen=True)
class NewWhen:
    """When it fires from now on, as far as that changes."""

    when: WhenText | None = None
    zone: Zone | None = None
    calendar: CalendarFiles = ()
    spread: Spread = None
    starts_at: StartsAt = None
    ends_at: EndsAt = None
    max_runs: MaxRuns = None
    catch_up: Rule | None = None
    catch_up_window: Annotated[Window | None, Parameter(help="How far back it catches up; with --catch-up.")] = None
    overlap: Overlap | None = None
    pause_after_failures: PauseAfterFailures = None

    def given(self, invocation: Invocation) -> dict[str, Any]:
        zone = self.zone or "UTC"
        calendars = read_calendars(self.calendar, zone=zone, now=invocation.now, invocation=invocation)
        return {
            "when": self.when,
            "zone": self.zone,
            "calendars": calendars or None,
            "spread": parse_span(self.spread, "spread"),
            "starts_at": parse_instant(self.starts_at, "starts-at"),
            "ends_at": parse_instant(self.ends_at, "ends-at"),
            "max_runs": self.max_runs,
            "overlap": self.overlap,
            "pause_after_failures": self.pause_after_failures,
            "catch_up": self._catch_up(parse_span(self.catch_up_window, "catch-up-window")),
        }

    def _catch_up(self, window: timedelta | None) -> CatchUp | CatchUpRule | None:
        if self.catch_up is None:
            if window is not None:
                raise InvalidInput(
                    f"--catch-up-window is {self.catch_up_window}, without --catch-up.",
                    code="catch-up-missing",
                    hint="Say both: --catch-up latest --catch-up-window 2d.",
                    field="catch_up_window",
                    value=self.catch_up_window,
                )
            return None
        rule = CatchUpRule(self.catch_up)
        return rule if window is None else CatchUp(rule=rule, window=window)


@command("update")
async def update(
    name: Name,
    /,
    *,
    when: NewWhen = NewWhen(),  # noqa: B008  frozen
    arg: Arg = (),
    payload: Payload = None,
    app: CheckedBy = None,
    options: JobOptions = JobOptions(),  # noqa: B008  frozen
    expected_version: ExpectedVersion = None,
    invocation: Invocation,
) -> None:
    """Change some of a schedule; the rest stays.

    Arguments, tags and labels are replaced as a whole. Saying the same twice makes
    no new version. To take something away, say all of it again: schedule create
    --replace.

    Examples:
      mainspring schedule update nightly --when "every day at 03:30"
      mainspring schedule update nightly --zone Europe/Berlin --priority 2
      mainspring schedule update remind-42 --arg customer=43 --expected-version 7
    """
    given = when.given(invocation) | options.given()
    changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    if arg or payload is not None:
        changes["arguments"] = parse_payload(payload, arg)
    application = None if app is None else load_app(app)
    async with invocation.client(application) as client:
        if application is None and "arguments" in changes:
            invocation.say(NOT_CHECKED)
        schedule = await client.schedules.update(name, expected_version=expected_version, **changes)
        coming = await client.schedules.preview(name, count=COMING)
    print_changed(invocation, schedule, coming)

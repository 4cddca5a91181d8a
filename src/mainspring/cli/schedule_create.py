"""`mainspring schedule create`: make a schedule at run time, or replace one."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter
from msgspec import to_builtins

from mainspring.app.loading import load_app
from mainspring.app.mainspring import Mainspring
from mainspring.cli.command import Flag, Invocation, command
from mainspring.cli.parsing import parse_instant, parse_payload, parse_span
from mainspring.cli.run_submit import Arg, CheckedBy, JobOptions, Payload
from mainspring.cli.schedule_show import COMING, Facts, coming_lines, facts, next_documents
from mainspring.cli.schedules import CalendarFiles, Zone, as_local, read_calendars
from mainspring.cli.text import counted, number_text
from mainspring.control.schedule_errors import schedule_exists, version_conflict
from mainspring.control.schedule_requests import ScheduleRequest
from mainspring.control.schedule_texts import ReadSchedule, read_schedule
from mainspring.errors import InvalidInput, ScheduleNotFound
from mainspring.model.scheduling import ScheduleSummary
from mainspring.schedule.deciding import CatchUp, CatchUpRule, OverlapPolicy, checked_failures
from mainspring.schedule.forecast import AddedLoad
from mainspring.schedule.preview import Preview

DEFAULT = CatchUp()
NOT_CHECKED = "arguments are checked when a run of it starts; give --app to check them now"

WhenText = Annotated[str, Parameter(help="Cron, an interval, instants, a recurrence rule, or plain English.")]
Spread = Annotated[str | None, Parameter(help="Start each run up to so much later, always the same: 10m.")]
StartsAt = Annotated[str | None, Parameter(help="Nothing before this instant: 2027-01-01T00:00+01:00.")]
EndsAt = Annotated[str | None, Parameter(help="Nothing from this instant on.")]
MaxRuns = Annotated[int | None, Parameter(help="At most so many instants, counted from --starts-at.")]
Rule = Annotated[
    Literal["latest", "all", "earliest", "none"], Parameter(help="Which of the instants it missed fire after all.")
]
Window = Annotated[str, Parameter(help="How far back it catches up.")]
Overlap = Annotated[
    Literal["allow", "skip", "buffer_one", "buffer_all", "cancel_other"],
    Parameter(help="What becomes of an instant while an earlier run has not ended."),
]
PauseAfterFailures = Annotated[
    int | None, Parameter(help="Pause it when so many runs in a row have ended without success.")
]


@Parameter(name="*", group=Group("When", sort_key=0))
@dataclass(frozen=True)
class When:
    """When it fires, and what happens to what it misses."""

    when: WhenText
    zone: Zone = "UTC"
    calendar: CalendarFiles = ()
    spread: Spread = None
    starts_at: StartsAt = None
    ends_at: EndsAt = None
    max_runs: MaxRuns = None
    catch_up: Rule = DEFAULT.rule.value
    catch_up_window: Window = "1d"
    overlap: Overlap = "allow"
    pause_after_failures: PauseAfterFailures = None

    def read(self, invocation: Invocation) -> ReadSchedule:
        now = invocation.now
        calendars = read_calendars(self.calendar, zone=self.zone, now=now, invocation=invocation)
        return read_schedule(
            self.when,
            zone=self.zone,
            now=now,
            calendars=calendars,
            starts_at=parse_instant(self.starts_at, "starts-at"),
            ends_at=parse_instant(self.ends_at, "ends-at"),
            max_runs=self.max_runs,
            spread=parse_span(self.spread, "spread"),
        )

    def read_rules(self) -> dict[str, Any]:
        window = parse_span(self.catch_up_window, "catch-up-window")
        assert window is not None
        return {
            "catch_up": CatchUp(rule=CatchUpRule(self.catch_up), window=window),
            "overlap": OverlapPolicy(self.overlap),
            "pause_after_failures": checked_failures(self.pause_after_failures),
        }


@command("create")
async def create(
    name: Annotated[str, Parameter(help="A name of its own.")],
    /,
    *,
    job: Annotated[str, Parameter(help="The name of the job that it runs.")],
    when: When,
    arg: Arg = (),
    payload: Payload = None,
    app: CheckedBy = None,
    options: JobOptions = JobOptions(),  # noqa: B008  frozen
    replace: Annotated[bool, Flag, Parameter(help="Replace the schedule of this name, if there is one.")] = False,
    expected_version: Annotated[int | None, Parameter(help="Replace only this version.")] = None,
    dry_run: Annotated[bool, Flag, Parameter(help="Show what it means and what load it adds; change nothing.")] = False,
    invocation: Invocation,
) -> None:
    """Make a schedule: a job, its arguments, and when it runs.

    Prints what it means and the next instants. It fires as soon as a scheduler
    runs. With --replace, saying the same twice changes nothing, so a script may
    repeat it. Quote --when: the shell reads * and |.

    Examples:
      mainspring schedule create nightly --job report --when "every day at 02:30"
      mainspring schedule create poll --job poll --when 90s --replace
      mainspring schedule create remind-42 --job remind --arg customer=42 --when "0 9 * * 1-5" --dry-run
    """
    _check_replaces(replace=replace, expected_version=expected_version)
    arguments, read = parse_payload(payload, arg), when.read(invocation)
    rules, checked = when.read_rules(), options.checked()
    application = None if app is None else load_app(app)
    async with invocation.client(application) as client:
        if application is not None:
            application.registry.find(job)  # raises if it is not one of its jobs
        encoded = client.registry.encode(job, arguments)
        request = ScheduleRequest(name=name, job=job, payload=encoded, options=checked, **rules, **read._asdict())
        made, load, schedules = None, None, (await client.services()).schedules
        request = await schedules.resolved(client.actor, request)  # what it means is said by its calendars, too
        if dry_run:
            request.first_after(invocation.now)
            await _check(client, request, replace=replace, expected_version=expected_version)
            load = await client.schedules.added_load(name, read.schedule)
        elif replace:
            made = await schedules.put(client.actor, request, expected_version=expected_version)
        else:
            made = await schedules.create(client.actor, request)
        coming = (
            request.schedule.preview(invocation.now, count=COMING, job=name)
            if made is None
            else await client.schedules.preview(name, count=COMING)
        )
    if application is None:
        invocation.say(NOT_CHECKED)
    _print(invocation, request, made, coming, load)


def _check_replaces(*, replace: bool, expected_version: int | None) -> None:
    if expected_version is not None and not replace:
        raise InvalidInput(
            f"--expected-version is {expected_version}; it needs --replace: a new schedule has no version yet.",
            code="expected-version-of-new",
            hint="Add --replace, or leave it out.",
            field="expected_version",
            value=expected_version,
        )


async def _check(client: Mainspring, request: ScheduleRequest, *, replace: bool, expected_version: int | None) -> None:
    """Refuse what would be refused if it were meant."""
    if client.registry.definition_of(request.job) is None:
        await client.jobs.find(request.job)
    try:
        present = await client.schedules.find(request.name)
    except ScheduleNotFound:
        if expected_version is not None:
            raise
        return
    if not replace:
        raise schedule_exists(request.name)
    if expected_version is not None and expected_version != present.version:
        raise version_conflict(request.name, present.version, expected_version)


def _print(
    invocation: Invocation,
    request: ScheduleRequest,
    made: ScheduleSummary | None,
    coming: Preview,
    load: AddedLoad | None,
) -> None:
    schedule = request.schedule
    if not invocation.wants_json:
        lines = [*_lines_about(request, made, coming, invocation.now), *(_load_lines(load) if made is None else ())]
        invocation.print(facts(lines))
        return
    described = {
        "name": request.name,
        "job": request.job,
        "when": schedule.text,
        "words": schedule.words,
        "zone": schedule.zone,
    }
    known = described | {"busiest_second": load} if made is None else to_builtins(made)
    invocation.print_json(known | {"is_dry_run": made is None, "next": next_documents(coming)})


def _lines_about(request: ScheduleRequest, made: ScheduleSummary | None, coming: Preview, now: datetime) -> Facts:
    about = "nothing was changed" if made is None else f"version {made.version}"
    yield "schedule", f"{request.name} ({about})"
    yield "job", request.job
    # What was made may be what was there, if the same was said before.
    when, words = (request.schedule.text, request.schedule.words) if made is None else (made.when, made.words)
    yield "when", when
    yield "in words", words
    if made is not None and made.paused_at is not None:
        yield "state", f"paused by {made.paused_by}; it stays paused"
    yield from coming_lines(coming, now)


def _load_lines(load: AddedLoad | None) -> Facts:
    """What it would add to the load of the next day, where that is highest."""
    if load is None:
        yield "load", "none within a day"
        return
    about = "about " if load.is_estimate else ""
    runs = counted(load.added, "run")
    yield "load", f"{runs} on top of {about}{number_text(load.before)} in its busiest second of the next day,"
    yield "", as_local(load.at, seconds=True)

"""`mainspring schedule forecast`: how many runs of all schedules will be due in each minute."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from mainspring.cli.command import Invocation, command
from mainspring.cli.parsing import parse_span
from mainspring.cli.schedule_load import chart
from mainspring.cli.schedules import as_local, as_stamp
from mainspring.cli.tables import fits, wrapped
from mainspring.cli.text import counted, number_text, safe
from mainspring.schedule.forecast import Forecast, Peak, PeakMaker
from mainspring.schedule.interval import span_text
from mainspring.schedule.zones import zone_named

Lines = Iterator[Text]


@command("forecast")
async def show(
    *,
    within: Annotated[str, Parameter(help="How far to look, at most 31d.")] = "1d",
    zone: Annotated[str, Parameter(help="The IANA time zone in which times are shown.")] = "UTC",
    peaks: Annotated[int, Parameter(help="How many of the fullest minutes to show.")] = 5,
    invocation: Invocation,
) -> None:
    """Show how many runs of all schedules will be due, minute by minute.

    With the schedules that make the fullest minutes, and the spread that would
    flatten them. A spread is counted in equal shares over its window. Of more than
    20,000 schedules a sample is counted, and the numbers are estimates.

    Examples:
      mainspring schedule forecast
      mainspring schedule forecast --within 7d --zone Europe/Berlin
      mainspring schedule forecast --within 1h -o json
    """
    zone_named(zone)
    span = parse_span(within, "within") or timedelta(0)
    async with invocation.client() as client:
        found = await client.schedules.forecast(hours=span / timedelta(hours=1), peaks=peaks)
    if invocation.wants_json:
        invocation.print_json(_document(found))
    else:
        _print(found, zone, invocation)


def _document(found: Forecast) -> dict[str, Any]:
    return {
        "begin": as_stamp(found.begin),
        "end": as_stamp(found.end),
        "step": "minute",
        "schedules": found.schedules,
        "is_estimate": found.is_estimate,
        "left_out": found.left_out,
        "total": _rounded(found.total),
        "peaks": [_rounded_peak(peak) for peak in found.peaks],
        "counts": [
            [as_stamp(found.begin + place * found.step), _rounded(count)]
            for place, count in enumerate(found.counts)
            if _rounded(count)
        ],
        "tzdata": found.tzdata,
    }


def _rounded(count: float) -> float:
    """As people see it: shares of runs that are spread, and estimates, have one digit that means something."""
    number = round(count, 1)
    return int(number) if number == int(number) else number


def _rounded_peak(peak: Peak) -> Peak:
    return replace(
        peak,
        count=_rounded(peak.count),
        makers=tuple(
            replace(
                maker,
                count=_rounded(maker.count),
                flattened_to=None if maker.flattened_to is None else _rounded(maker.flattened_to),
            )
            for maker in peak.makers
        ),
    )


def _print(found: Forecast, zone: str, invocation: Invocation) -> None:
    about = "about " if found.is_estimate else ""
    begin, end = (as_local(at.astimezone(zone_named(zone))) for at in (found.begin, found.end))
    invocation.print(Text(f"{about}{counted(found.schedules, 'active schedule')}", style="bold"))
    due = Text(f"{about}{counted(found.total, 'run')} due from {begin} to {end}")
    apart = [Text(f"{about}{counted(found.total, 'run')} due"), Text(f"from {begin}"), Text(f"to   {end}")]
    invocation.print(*([due] if fits([due], invocation.width) else apart))
    if found.peaks:
        invocation.print("", *chart(found.counts, found.begin, found.step, zone, invocation.width))
        invocation.print("", Text("fullest minutes", style="dim"))
        invocation.print(*(line for peak in found.peaks for line in _peak(peak, zone, invocation.width)))
    invocation.print("", *(Text(remark, style="dim") for remark in _remarks(found)))


def _peak(peak: Peak, zone: str, width: int) -> Lines:
    local = as_local(peak.at.astimezone(zone_named(zone)))
    yield Text(f"{local}  ").append(number_text(peak.count), style="bold")
    for maker in peak.makers:
        line = Text("  ").append(f"{number_text(maker.count)} of ").append_text(_maker(maker))
        yield from [line] if fits([line], width) else wrapped(line, width, first="", indent="    ")
        if maker.spread is not None and maker.flattened_to is not None:
            spread, left = span_text(elapsed=maker.spread), number_text(maker.flattened_to)
            yield Text(f"    with spread={spread}: {left} in that minute", style="yellow")


def _maker(maker: PeakMaker) -> Text:
    named = "" if maker.name is None else f" ({safe(maker.name)}" + (", …)" if maker.schedules > 1 else ")")
    return Text(safe(maker.when, 80)).append(named, style="dim")


def _remarks(found: Forecast) -> Iterator[str]:
    if found.is_estimate:
        yield "The numbers are estimates: a sample of the schedules was counted."
    if found.left_out:
        are = "is left out: it" if found.left_out == 1 else "are left out: they"
        yield f"{counted(found.left_out, 'schedule')} {are} cannot be decided. See mainspring doctor."
    yield f"tzdata {found.tzdata}"

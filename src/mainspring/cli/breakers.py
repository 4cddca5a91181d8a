"""`mainspring breaker`: after so many failures the runs of a job wait, until one that is tried succeeds."""

from datetime import timedelta
from typing import Annotated

from cyclopts import Parameter
from msgspec import to_builtins
from rich.text import Text

from mainspring.cli.command import Invocation, command
from mainspring.cli.parsing import parse_span
from mainspring.cli.rules import print_removed, set_by
from mainspring.cli.tables import Column, fitted
from mainspring.cli.text import as_instant, safe
from mainspring.model.breaker import BreakerEvent, BreakerState, BreakerStatus, OpeningStatus

COLUMNS = (
    Column("job", least=16),
    Column("by", least=8),
    Column("opens after", least=12),
    Column("state"),
    Column("failures", is_number=True),
    Column("values", is_number=True),
    Column("waiting", is_number=True),
    Column("since", leave_out=3),
    Column("next probe", leave_out=2),
    Column("set by", leave_out=1),
)
OPENING_COLUMNS = (
    Column("value", least=12),
    Column("state"),
    Column("since"),
    Column("waiting", is_number=True),
    Column("probes", is_number=True),
    Column("next probe"),
    Column("opened by", leave_out=1),
    Column("why", leave_out=2),
)
EVENT_COLUMNS = (
    Column("at"),
    Column("what"),
    Column("value", least=8),
    Column("who", leave_out=1),
    Column("why", least=12),
)
STYLES = {BreakerState.CLOSED: "green", BreakerState.OPEN: "red", BreakerState.HALF_OPEN: "yellow"}

Job = Annotated[str, Parameter(help="Whose breaker.")]
Value = Annotated[str | None, Parameter(help="For this value of its key; without it, for the whole job.")]
Reason = Annotated[str, Parameter(help="Why; kept in the audit.")]


@command("list")
async def list_breakers(*, invocation: Invocation) -> None:
    """List circuit breakers: whether they are open, since when, how many runs wait.

    Examples:
      mainspring breaker list
      mainspring breaker list -o json
    """
    async with invocation.client() as client:
        breakers = await client.breakers.list()
    if invocation.wants_json:
        invocation.print_json({"breakers": to_builtins(breakers)})
    elif breakers:
        invocation.print_lines(fitted(COLUMNS, [_row(each) for each in breakers], invocation.room))
    else:
        invocation.print("No circuit breakers. Set one: mainspring breaker set --job NAME")


@command("show")
async def show(*, job: Job, invocation: Invocation) -> None:
    """Show a circuit breaker: where it is open, and when it opened and closed.

    Example:
      mainspring breaker show --job send
    """
    async with invocation.client() as client:
        breaker, events = await client.breakers.show(job)
    if invocation.wants_json:
        invocation.print_json({"breaker": to_builtins(breaker), "history": to_builtins(events)})
        return
    invocation.print(_sentence(breaker))
    if breaker.openings:
        rows = [_opening_row(each) for each in breaker.openings]
        invocation.print_lines(fitted(OPENING_COLUMNS, rows, invocation.room))
    if events:
        invocation.print_lines(fitted(EVENT_COLUMNS, [_event_row(each) for each in events], invocation.room))


@command("set")
async def set_breaker(
    *,
    job: Job,
    failures: Annotated[int, Parameter(help="So many failures open it.")] = 5,
    within: Annotated[str, Parameter(help="Within so long: 30s, 5m.")] = "60s",
    failure_ratio: Annotated[float | None, Parameter(help="Only if this part of all attempts failed: 0.5.")] = None,
    key: Annotated[
        str | None,
        Parameter(help='What tells runs apart: a path into their arguments, or a text such as "{region}/{customer}".'),
    ] = None,
    probe_after: Annotated[str, Parameter(help="How long until the first probe.")] = "30s",
    max_probe_after: Annotated[
        str | None, Parameter(help="To which the pause grows after probes that fail; 10m unless told.")
    ] = None,
    reason: Reason = "",
    invocation: Invocation,
) -> None:
    """Let runs of a job wait after so many failures; single ones are tried until one succeeds.

    In force within a second. Failures are counted anew; what is open stays so, unless the key is another one.

    Examples:
      mainspring breaker set --job send
      mainspring breaker set --job send --failures 20 --within 5m --failure-ratio 0.5 --key customer
    """
    spans = {"within": within, "probe_after": probe_after, "max_probe_after": max_probe_after}
    given = {name: found for name, text in spans.items() if (found := parse_span(text, name)) is not None}
    async with invocation.client() as client:
        breaker = await client.breakers.set(job, failures, failure_ratio=failure_ratio, key=key, reason=reason, **given)
    _print_status(invocation, breaker)


@command("remove")
async def remove(*, job: Job, reason: Reason = "", invocation: Invocation) -> None:
    """Remove a circuit breaker. Whoever waits goes on.

    Example:
      mainspring breaker remove --job send
    """
    async with invocation.client() as client:
        is_gone = await client.breakers.remove(job, reason=reason)
    print_removed(invocation, is_gone=is_gone)


@command("open")
async def open_breaker(
    *,
    job: Job,
    value: Value = None,
    probes: Annotated[
        bool, Parameter(negative="--no-probes", help="Try single runs; the first that succeeds closes it.")
    ] = True,
    reason: Reason = "",
    invocation: Invocation,
) -> None:
    """Let the runs of a job wait, without an attempt being spent.

    Examples:
      mainspring breaker open --job send --reason "they are moving"
      mainspring breaker open --job send --value acme --no-probes
    """
    async with invocation.client() as client:
        breaker = await client.breakers.open(job, value=value, probes=probes, reason=reason)
    _print_status(invocation, breaker)


@command("close")
async def close_breaker(*, job: Job, value: Value = None, reason: Reason = "", invocation: Invocation) -> None:
    """Let waiting runs of a job go on.

    Examples:
      mainspring breaker close --job send
      mainspring breaker close --job send --value acme --reason "they are back"
    """
    async with invocation.client() as client:
        closed = await client.breakers.close(job, value=value, reason=reason)
    if invocation.wants_json:
        invocation.print_json({"closed": closed})
    else:
        invocation.print("it was not open" if not closed else f"closed for {closed:,} value{'s' if closed > 1 else ''}")


def _print_status(invocation: Invocation, breaker: BreakerStatus) -> None:
    if invocation.wants_json:
        invocation.print_json({"breaker": to_builtins(breaker)})
    else:
        invocation.print(_sentence(breaker))


def _sentence(status: BreakerStatus) -> str:
    by = f" for each value of {safe(status.breaker.key)}" if status.breaker.key else ""
    first, longest = _span(status.breaker.probe_after), _span(status.breaker.max_probe_after)
    values = f"{status.open_values:,} value{'s' if status.open_values > 1 else ''}"
    opened = f" for {values}" if status.open_values else ""
    opens = f"opens after {_threshold(status)}{by}, first probe after {first}, then up to {longest}"
    return f"job {safe(status.job)}: {opens}; {status.state}{opened}, {_count(status)} wait"


def _threshold(status: BreakerStatus) -> str:
    breaker = status.breaker
    ratio = "" if breaker.failure_ratio is None else f" and {breaker.failure_ratio:.0%}"
    return f"{breaker.failures:,} in {_span(breaker.within)}{ratio}"


def _span(given: timedelta) -> str:
    seconds = given.total_seconds()
    for size, unit in ((3_600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"


def _count(status: BreakerStatus | OpeningStatus) -> str:
    return f"{'' if status.waiting_is_exact else '≥ '}{status.waiting:,}"


def _row(status: BreakerStatus) -> list[Text]:
    return [
        Text(safe(status.job)),
        Text(safe(status.breaker.key or "–")),
        Text(_threshold(status)),
        Text(status.state.value, style=STYLES[status.state]),
        Text(f"{status.failures:,}"),
        Text(f"{status.open_values:,}"),
        Text(_count(status), style="yellow" if status.waiting else ""),
        Text("–" if status.since is None else as_instant(status.since)),
        Text("–" if status.next_probe_at is None else as_instant(status.next_probe_at)),
        set_by(status),
    ]


def _opening_row(status: OpeningStatus) -> list[Text]:
    return [
        Text(safe(status.value or "the whole job")),
        Text(status.state.value, style=STYLES[status.state]),
        Text(as_instant(status.opened_at)),
        Text(_count(status), style="yellow" if status.waiting else ""),
        Text(f"{status.probes:,}"),
        Text("–" if status.next_probe_at is None else as_instant(status.next_probe_at)),
        Text(safe(status.opened_by)),
        Text(safe(status.reason or status.error or "")),
    ]


def _event_row(event: BreakerEvent) -> list[Text]:
    detail = event.detail
    failures = f"{detail['failures']:,} failures" if "failures" in detail and event.action == "breaker.open" else ""
    why = ", ".join(str(each) for each in (failures, detail.get("error"), detail.get("reason")) if each)
    return [
        Text(as_instant(event.at)),
        Text(event.action.removeprefix("breaker.")),
        Text(safe(str(detail.get("value") or "–"))),
        Text(safe(event.actor)),
        Text(safe(why)),
    ]

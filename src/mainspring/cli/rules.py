"""What limits, backlog caps and circuit breakers have in common at the terminal: for whom, set by whom, removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.text import Text

from mainspring.cli.command import Flag
from mainspring.cli.text import as_instant, safe
from mainspring.cli.usage import USAGE
from mainspring.errors import InvalidInput
from mainspring.model.concurrency import LimitScope

if TYPE_CHECKING:
    from mainspring.cli.command import Invocation
    from mainspring.model.backlog import BacklogStatus
    from mainspring.model.breaker import BreakerStatus
    from mainspring.model.concurrency import LimitStatus

Job = Annotated[str | None, Parameter(help="Of a job's runs.")]
Queue = Annotated[str | None, Parameter(help="Of a queue's runs.")]
AllRuns = Annotated[bool, Flag, Parameter(help="Of all runs of the tenant together.")]
Key = Annotated[
    str | None,
    Parameter(help='What tells runs apart: a path into their arguments, or a text such as "{region}/{customer}".'),
]


def check_whose(job: str | None, queue: str | None, *, all_runs: bool) -> None:
    """Refuse a rule for all runs of the tenant where it was not asked for: a forgotten option would stop everybody."""
    given = [name for name, value in (("--job", job), ("--queue", queue)) if value is not None]
    if all_runs and given:
        raise InvalidInput(
            f"--all-runs and {given[0]} were both given; they exclude each other.",
            code=USAGE,
            hint=f"Give {given[0]} alone, or --all-runs alone.",
            field="all-runs",
        )
    if not all_runs and not given:
        raise InvalidInput(
            "It is not said for whose runs: one of --job, --queue and --all-runs is needed.",
            code=USAGE,
            hint="Give --job NAME or --queue NAME; --all-runs is for all runs of the tenant together.",
            field="all-runs",
        )


def whose(rule: LimitStatus | BacklogStatus) -> str:
    """Whose runs are counted together."""
    return "all runs" if rule.scope is LimitScope.TENANT else f"{rule.scope} {safe(rule.name)}"


def set_by(rule: LimitStatus | BacklogStatus | BreakerStatus) -> Text:
    """Who set it, and when."""
    who = "the code" if rule.is_as_declared else safe(rule.changed_by)
    return Text(f"{who}, {as_instant(rule.changed_at)}")


def why_set(rule: LimitStatus | BacklogStatus) -> Text:
    """Why somebody set it; the code needs no reason."""
    return Text("" if rule.is_as_declared else safe(rule.reason))


def print_removed(invocation: Invocation, *, is_gone: bool) -> None:
    """`is_gone`: the code does not declare it."""
    if invocation.wants_json:
        invocation.print_json({"removed": True, "declared": not is_gone})
    else:
        invocation.print(
            "removed" if is_gone else "removed; the code declares it, so it comes back with the next start"
        )

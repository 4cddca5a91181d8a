"""What can be said about a new run besides its arguments: where and when it runs, and under which policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from mainspring.app.job import Options, checked_options
from mainspring.cli.command import Repeatable
from mainspring.cli.parsing import parse_instant, parse_retry, parse_span


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions:
    """Instead of what the job says."""

    queue: Annotated[str | None, Parameter(help="Instead of the job's own queue.")] = None
    label: Annotated[
        tuple[str, ...], Repeatable, Parameter(help="Only for workers with this label, instead of the job's labels.")
    ] = ()
    priority: Annotated[int | None, Parameter(help="0 (most urgent) to 9.")] = None
    delay: Annotated[str | None, Parameter(help="Start so much later: 500ms, 30s, 15m, 2h, 1d.")] = None
    at: Annotated[str | None, Parameter(help="Start at an instant: 2026-12-24T18:00:00+01:00.")] = None
    key: Annotated[str | None, Parameter(help="Idempotency key: submitting again returns the first run.")] = None
    tag: Annotated[tuple[str, ...], Repeatable, Parameter(help="May be given several times.")] = ()
    max_age: Annotated[
        str | None, Parameter(help="Expire if not started, or started again, so long after it is due.")
    ] = None
    start_within: Annotated[str | None, Parameter(help="Expire if its first attempt has not begun by then.")] = None
    attempt_timeout: Annotated[str | None, Parameter(help="How long an attempt may take.")] = None
    run_timeout: Annotated[str | None, Parameter(help="How long all attempts may take, from the first start.")] = None
    retry: Annotated[
        str | None, Parameter(help="Instead of the job's policy: max_attempts=3,first_delay=5s,jitter=full.")
    ] = None

    def checked(self) -> Options:
        """As the application takes them; refuses what breaks a rule."""
        return checked_options(
            at=parse_instant(self.at, "at"),
            delay=parse_span(self.delay, "delay"),
            priority=self.priority,
            queue=self.queue,
            labels=self.label or None,
            tags=self.tag or None,
            key=self.key,
            max_age=parse_span(self.max_age, "max-age"),
            retry=parse_retry(self.retry),
            timeout=parse_span(self.attempt_timeout, "attempt-timeout"),
            run_timeout=parse_span(self.run_timeout, "run-timeout"),
            start_within=parse_span(self.start_within, "start-within"),
            connection=None,
        )

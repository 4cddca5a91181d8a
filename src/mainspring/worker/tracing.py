"""Trace context: from whoever submits a run to the span of each of its attempts. Only where OpenTelemetry is used.

Nothing here is imported unless the program itself has imported OpenTelemetry: else there is no current span, and no
one to report one to.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mainspring.model.context import Context

TRACEPARENT, TRACESTATE = "traceparent", "tracestate"


def current_trace() -> dict[str, str]:
    """The W3C headers of the current span, if there is one."""
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier


async def within_span(context: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
    """Middleware: the attempt is a span whose parent is the submitter's."""
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    parent = TraceContextTextMapPropagator().extract(dict(context.headers))
    with trace.get_tracer("mainspring").start_as_current_span(
        context.job,
        context=parent,
        kind=trace.SpanKind.CONSUMER,
        attributes={
            "mainspring.run_id": str(context.run_id),
            "mainspring.job": context.job,
            "mainspring.attempt": context.attempt,
            "mainspring.fence": context.fence,
        },
    ):
        return await call_next()

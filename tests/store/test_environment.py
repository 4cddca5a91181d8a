"""Hooks, resources, middleware and trace context: what surrounds handlers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mainspring import Context, Mainspring, RetryPolicy
from mainspring.errors import InvalidArguments, InvalidInput, RunFailed
from mainspring.testing import inline, run_until_idle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from mainspring.testing import FrozenClock

    CallNext = Callable[[], Awaitable[Any]]

ONCE = RetryPolicy(max_attempts=1)


@pytest.fixture
def app() -> Mainspring:
    """An application that has no database and needs none."""
    return Mainspring("postgresql://nobody@nowhere.invalid/nothing")


# ── hooks and resources ─────────────────────────────────────────────────────────────────────────────────────────


async def test_hooks_and_resources_are_opened_once_and_closed_in_reverse(frozen_app: Mainspring) -> None:
    said: list[str] = []

    @frozen_app.on_start
    async def begin() -> None:
        said.append("start")

    @frozen_app.on_start
    def begin_too() -> None:
        said.append("start too")

    @frozen_app.on_stop
    def end() -> None:
        said.append("stop")

    @frozen_app.on_stop
    async def end_too() -> None:
        said.append("stop too")

    @frozen_app.resource
    async def pool() -> AsyncIterator[list[int]]:
        said.append("open pool")
        yield [1]
        said.append("close pool")

    @frozen_app.resource
    def session(*, pool: list[int] = pool.injected) -> Iterator[str]:
        said.append("open session")
        yield f"session of {pool}"
        said.append("close session")

    @frozen_app.job
    async def use(n: int, *, pool: list[int] = pool.injected, session: str = session.injected) -> str:
        return f"{n} {pool} {session}"

    @frozen_app.job
    def use_in_thread(context: Context, *, session: str = session.injected) -> str:
        return f"{context.job} {session}"

    handles = [await use.submit(1), await use.submit(n=2), await use_in_thread.submit()]
    await run_until_idle(frozen_app)

    assert [await handle.result(timeout=20) for handle in handles] == [
        "1 [1] session of [1]",
        "2 [1] session of [1]",
        "use_in_thread session of [1]",
    ]
    opened, closed = ["open pool", "open session"], ["close session", "close pool"]
    assert said == ["start", "start too", *opened, *closed, "stop too", "stop"]


async def test_a_resource_may_be_any_context_manager(frozen_app: Mainspring) -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[str]:
        yield "async"

    @contextmanager
    def opened_plainly() -> Iterator[str]:
        yield "plain"

    one, other = frozen_app.resource(opened), frozen_app.resource(opened_plainly)

    @frozen_app.job
    async def use(*, one: str = one.injected, other: str = other.injected) -> str:
        return f"{one} {other}"

    handle = await use.submit()
    await run_until_idle(frozen_app)

    assert await handle.result(timeout=20) == "async plain"


async def test_a_worker_that_cannot_open_a_resource_does_not_start_and_closes_the_others(
    frozen_app: Mainspring,
) -> None:
    said: list[str] = []

    @frozen_app.resource
    async def fine() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            said.append("closed")

    @frozen_app.resource
    async def broken() -> AsyncIterator[int]:
        raise ConnectionRefusedError("nobody there")
        yield 1

    @frozen_app.job
    async def nothing() -> None: ...

    with pytest.raises(ConnectionRefusedError):
        await run_until_idle(frozen_app)
    assert said == ["closed"]


async def test_a_stop_hook_that_fails_keeps_nobody_from_stopping(frozen_app: Mainspring) -> None:
    said: list[str] = []

    @frozen_app.on_stop
    def end() -> None:
        said.append("first defined, last called")

    @frozen_app.on_stop
    def fail() -> None:
        raise RuntimeError("no")

    @frozen_app.resource
    async def sticky() -> AsyncIterator[int]:
        yield 1
        raise RuntimeError("does not close")

    @frozen_app.job
    async def nothing() -> None: ...

    await run_until_idle(frozen_app)

    assert said == ["first defined, last called"]


def test_an_injected_parameter_is_keyword_only(app: Mainspring) -> None:
    @app.resource
    async def pool() -> AsyncIterator[int]:
        yield 1

    with pytest.raises(InvalidInput, match="'pool' is given a resource and must be keyword-only") as refused:

        @app.job
        async def use(pool: int = pool.injected) -> None: ...

    assert refused.value.code == "invalid-handler"


def test_a_resource_of_another_application_is_refused(app: Mainspring) -> None:
    other = Mainspring("postgresql://nowhere")

    @other.resource
    async def pool() -> AsyncIterator[int]:
        yield 1

    with pytest.raises(InvalidInput, match="does not belong to this application") as refused:

        @app.job
        async def use(*, pool: int = pool.injected) -> None: ...

    assert refused.value.code == "foreign-resource"


def test_a_resource_that_takes_something_else_is_refused(app: Mainspring) -> None:
    with pytest.raises(InvalidInput, match="takes 'url', and nobody can give it that") as refused:

        @app.resource
        async def pool(url: str) -> AsyncIterator[int]:
            yield 1

    assert refused.value.code == "invalid-resource"


async def test_what_is_injected_is_no_argument_of_a_run(app: Mainspring) -> None:
    @app.resource
    async def pool() -> AsyncIterator[int]:
        yield 1

    @app.job
    async def use(n: int, *, pool: int = pool.injected) -> int:
        return n + pool

    assert use.handler.arguments.names == ("n",)
    with pytest.raises(InvalidArguments, match="pool"):
        await use.submit(1, pool=7)
    with pytest.raises(InvalidArguments, match="unknown field `pool`"):
        use.handler.arguments.encode_mapping({"n": 1, "pool": 7})


async def test_a_call_here_and_now_must_bring_the_resources(app: Mainspring) -> None:
    @app.resource
    async def pool() -> AsyncIterator[int]:
        yield 1

    @app.job
    async def use(n: int, *, pool: int = pool.injected) -> int:
        return n + pool

    assert await use(1, pool=10) == 11
    with pytest.raises(InvalidArguments, match="is given 'pool' by its worker"):
        use(1)


async def test_tests_may_replace_a_resource(frozen_app: Mainspring) -> None:
    @frozen_app.resource
    async def mailer() -> AsyncIterator[str]:
        raise AssertionError("not in tests")
        yield "real"

    @frozen_app.job
    async def send(*, mailer: str = mailer.injected) -> str:
        return mailer

    with mailer.replaced_by("fake"):
        handle = await send.submit()
        await run_until_idle(frozen_app)
        with inline(frozen_app):
            here = await send.submit()

    assert await handle.result(timeout=20) == await here.result() == "fake"


# ── middleware ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_middleware_goes_around_every_attempt_the_first_defined_outermost(frozen_app: Mainspring) -> None:
    said: list[str] = []

    def layer(name: str) -> None:
        async def middleware(context: Context, call_next: CallNext) -> Any:
            said.append(f"{name} before {context.job} {context.attempt}")
            try:
                return f"{await call_next()}+{name}"
            finally:
                said.append(f"{name} after")

        frozen_app.middleware(middleware)

    layer("outer")
    layer("inner")

    @frozen_app.job
    async def work() -> str:
        said.append("work")
        return "done"

    @frozen_app.job
    def work_in_thread(context: Context) -> str:
        return f"attempt {context.attempt}"

    handle = await work.submit()
    await run_until_idle(frozen_app)

    assert await handle.result(timeout=20) == "done+inner+outer"
    assert said == ["outer before work 1", "inner before work 1", "work", "inner after", "outer after"]
    handle = await work_in_thread.submit()
    await run_until_idle(frozen_app)
    assert await handle.result(timeout=20) == "attempt 1+inner+outer"


async def test_what_middleware_raises_is_the_attempts_error_and_what_handlers_raise_reaches_it(
    frozen_app: Mainspring,
) -> None:
    caught: list[BaseException] = []

    @frozen_app.middleware
    async def guard(context: Context, call_next: CallNext) -> Any:
        if context.job == "forbidden":
            raise PermissionError("not today")
        try:
            return await call_next()
        except ValueError as error:
            caught.append(error)
            raise

    @frozen_app.job(retry=ONCE)
    async def forbidden() -> None: ...

    @frozen_app.job(retry=ONCE)
    async def failing() -> None:
        raise ValueError("mine")

    handles = [await forbidden.submit(), await failing.submit()]
    await run_until_idle(frozen_app)

    with pytest.raises(RunFailed, match="not today"):
        await handles[0].result(timeout=20)
    with pytest.raises(RunFailed, match="mine"):
        await handles[1].result(timeout=20)
    assert [str(error) for error in caught] == ["mine"]


def test_middleware_must_be_async(app: Mainspring) -> None:
    def plain(context: Context, call_next: CallNext) -> Any:
        return call_next()

    with pytest.raises(InvalidInput, match="must be async: 'plain' is not") as refused:
        app.middleware(plain)

    assert refused.value.code == "invalid-middleware"


async def test_inline_runs_have_resources_and_middleware_too(app: Mainspring) -> None:
    @app.resource
    async def pool() -> AsyncIterator[int]:
        yield 5

    @app.middleware
    async def double(context: Context, call_next: CallNext) -> Any:
        return 2 * await call_next()

    @app.job
    async def use(n: int, *, pool: int = pool.injected) -> int:
        return n + pool

    @app.job
    def use_in_thread(n: int, *, pool: int = pool.injected) -> int:
        return n + pool

    with inline(app):
        handles = [await use.submit(1), await use_in_thread.submit(2)]
        handles.append(await asyncio.to_thread(use_in_thread.submit_sync, 3))

    assert [await handle.result() for handle in handles] == [12, 14, 16]
    await asyncio.to_thread(app.close_sync)


# ── headers and trace context ───────────────────────────────────────────────────────────────────────────────────


async def test_headers_travel_with_the_run(frozen_app: Mainspring, clock: FrozenClock) -> None:
    @frozen_app.job(retry=RetryPolicy(max_attempts=2))
    async def look(context: Context) -> dict[str, str]:
        if context.attempt == 1:
            raise ValueError
        return dict(context.headers)

    handle = await look.options(headers={"x-shop": "berlin"}).submit()
    await run_until_idle(frozen_app, travel=True)

    assert await handle.result(timeout=20) == {"x-shop": "berlin"}
    assert (await handle.find()).headers == {"x-shop": "berlin"}


@pytest.mark.parametrize(
    "headers",
    [
        ["x"],
        {"X-Upper": "1"},
        {"": "1"},
        {"x": ""},
        {"x": "new\nline"},
        {"x": "ü"},
        {"x": 1},
        {1: "x"},
        {"x" * 65: "1"},
        {"x": "1" * 1_001},
        {f"x{n}": "1" for n in range(21)},
        {f"x{n}": "1" * 1_000 for n in range(5)},
        {"rerun_of": "x"},
    ],
)
def test_headers_are_few_short_and_printable(app: Mainspring, headers: Any) -> None:
    @app.job
    async def look() -> None: ...

    with pytest.raises(InvalidInput) as refused:
        look.options(headers=headers)

    assert refused.value.code == "invalid-headers"


TRACED = textwrap.dedent(
    """
    import asyncio, sys
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from mainspring import Context, Mainspring
    from mainspring.testing import run_until_idle

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    tracer = trace.get_tracer("shop")
    app = Mainspring(sys.argv[1])

    @app.job
    async def outer() -> None:
        await inner.submit()

    @app.job
    def inner(context: Context) -> None:
        with tracer.start_as_current_span("in the thread"):
            pass

    @app.job
    async def given(context: Context) -> str:
        return context.headers["traceparent"]

    async def main() -> None:
        with tracer.start_as_current_span("request"):
            await outer.submit()
            elsewhere = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            handle = await given.options(headers={"traceparent": elsewhere}).submit()
        await asyncio.to_thread(sync)
        await run_until_idle(app)
        assert await handle.result(timeout=20) == elsewhere
        spans = {span.name: span for span in exporter.get_finished_spans()}
        request, first, second = spans["request"], spans["outer"], spans["inner"]
        assert first.parent.span_id == request.context.span_id
        assert second.parent.span_id == first.context.span_id
        assert spans["in the thread"].parent.span_id == second.context.span_id
        assert {span.context.trace_id for span in (first, second)} == {request.context.trace_id}
        assert format(spans["given"].parent.span_id, "x") == "b7ad6b7169203331"
        assert spans["untraced"].parent is not None and spans["untraced"].attributes["mainspring.attempt"] == 1
        await app.close()

    @app.job
    async def untraced() -> None: ...

    def sync() -> None:
        with tracer.start_as_current_span("sync"):
            untraced.submit_sync()
        app.close_sync()

    asyncio.run(main())
    print("traced")
    """
)


async def test_the_span_of_an_attempt_has_the_submitters_as_its_parent(url: str) -> None:
    """In a process of its own: OpenTelemetry is set up once per process, and this one does without."""
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", TRACED, url], capture_output=True, text=True, timeout=60
    )

    assert done.stdout == "traced\n", done.stderr


def test_nobody_imports_opentelemetry_for_you() -> None:
    program = "import sys; from mainspring import Mainspring; print('opentelemetry' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"

"""Blocking twins are for code that is not async: inside an event loop they are refused, and say what to write."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from mainspring import Mainspring
from mainspring.app.binding import Stream, Verb
from mainspring.app.collections import (
    JobCollection,
    OperationCollection,
    QueueCollection,
    RunCollection,
    WorkerCollection,
)
from mainspring.app.handle import Handle
from mainspring.errors import DatabaseUnreachable, InvalidInput
from mainspring.model.context import Context
from mainspring.testing import inline
from mainspring.testing.reported import Reported

if TYPE_CHECKING:
    from collections.abc import Callable

app = Mainspring("postgresql://nobody@nowhere.invalid/nothing")


@app.job
def add(a: int) -> int:
    return a


def context() -> Context:
    return Context(run_id=uuid4(), job="add", attempt=1, fence=1, listener=Reported(app.clock))


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "submit_sync": (lambda: add.submit_sync(1), "await add.submit("),
    "submit_many_sync": (lambda: add.submit_many_sync([{"a": 1}]), "await add.submit_many("),
    "result_sync": (lambda: Handle(app, uuid4()).result_sync(), "await handle.result("),
    "running_sync": (app.running_sync, "async with app.running("),
    "close_sync": (app.close_sync, "await app.close("),
    "database_url_sync": (app.database_url_sync, "await app.database_url("),
    "checkpoint_sync": (lambda: context().checkpoint_sync(1), "await context.checkpoint("),
    "previous_success_at_sync": (
        lambda: context().previous_success_at_sync(),
        "await context.previous_success_at(",
    ),
    "finish_sync": (lambda: context().finish_sync(None), "await context.finish("),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_blocking_call_inside_an_event_loop_is_refused_and_names_its_twin(name: str) -> None:
    call, twin = CALLS[name]

    with pytest.raises(InvalidInput) as refused:
        call()

    assert refused.value.code == "blocking-in-event-loop"
    assert name in refused.value.message
    assert twin in str(refused.value.hint)


async def test_so_is_one_of_inline_mode_as_it_would_be_in_real_life() -> None:
    with inline(app):
        with pytest.raises(InvalidInput, match=r"await add\.submit"):
            add.submit_sync(1)
        handle = await add.submit(1)
        with pytest.raises(InvalidInput, match=r"await handle\.result"):
            handle.result_sync()


async def test_a_coroutine_that_is_refused_does_not_complain_that_nobody_awaited_it() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInput, match="without _sync"):
            app.blocking(app.close())


async def test_in_a_thread_beside_the_loop_it_may_block() -> None:
    with pytest.raises(DatabaseUnreachable):
        await asyncio.to_thread(add.submit_sync, 1)


def test_every_blocking_twin_that_is_written_by_hand_is_looked_at_here() -> None:
    kinds = (Mainspring, type(add), Context)
    by_hand = {name for kind in kinds for name in dir(kind) if name.endswith("_sync")}
    assert by_hand | {"result_sync"} == set(CALLS)


# ── the twins that are made ─────────────────────────────────────────────────────────────────────────────────────

BOUND = (Handle, RunCollection, JobCollection, QueueCollection, WorkerCollection, OperationCollection)
OF_ITSELF = {"handle"}  # asks the database nothing
TWINS = [(kind, name) for kind in BOUND for name in vars(kind) if name.endswith("_sync")]


def bound(kind: type[Any]) -> Any:
    return Handle(app, uuid4()) if kind is Handle else kind(app)


@pytest.mark.parametrize("kind", BOUND)
def test_whatever_asks_the_database_has_a_twin_for_code_that_is_not_async(kind: type[Any]) -> None:
    asking = {name for name, it in vars(kind).items() if isinstance(it, (Verb, Stream)) or iscoroutinefunction(it)}
    twins = {name.removesuffix("_sync") for each, name in TWINS if each is kind}

    assert asking - OF_ITSELF == twins


@pytest.mark.parametrize(("kind", "name"), TWINS)
async def test_inside_an_event_loop_each_is_refused_and_names_its_twin(kind: type[Any], name: str) -> None:
    with pytest.raises(InvalidInput, match=name) as refused:
        getattr(bound(kind), name)()

    assert f"{kind.called}.{name.removesuffix('_sync')}(" in str(refused.value.hint)


@pytest.mark.parametrize("kind", BOUND)
def test_what_is_bound_keeps_the_docstring_of_its_service_and_hides_who_asks(kind: type[Any]) -> None:
    for verb in vars(kind).values():
        if isinstance(verb, (Verb, Stream)):
            assert verb.__doc__
            assert "actor" not in inspect.signature(verb).parameters

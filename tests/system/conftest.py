"""A system to hurt, and its application."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from mainspring import Mainspring

from .machinery import System

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def system(url: str) -> AsyncIterator[System]:
    connection = await asyncpg.connect(url, server_settings={"search_path": "mainspring, public"})
    await connection.execute(
        "create table public.effect (run_id uuid, fence int, pid int, what text, at timestamptz default now())"
    )
    system = System(url, connection)
    yield system
    for tree in system.trees:
        if tree.process.poll() is None:
            tree.signal_children(signal.SIGCONT)
            tree.kill()
    await connection.close()


@pytest.fixture
async def jobs(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """The application of the fault tests, in this process, for submitting."""
    monkeypatch.setenv("EFFECTS_URL", url)
    from tests.system import faulty_app

    _move(faulty_app, url)
    yield faulty_app
    await faulty_app.app.close()


@pytest.fixture
async def poisons(url: str) -> AsyncIterator[Any]:
    """The application of the isolation tests, in this process, for submitting."""
    from tests.system import poison_app

    _move(poison_app, url)
    yield poison_app
    await poison_app.app.close()


def _move(module: Any, url: str) -> None:
    """Let all jobs of a module belong to an application on this database."""
    module.app = Mainspring(url, submitted_by="tester")
    for job in vars(module).values():
        if hasattr(job, "handler"):
            job._app = module.app
            with contextlib.suppress(Exception):
                module.app.registry.add(job.handler)

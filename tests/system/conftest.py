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

    faulty_app.app = Mainspring(url, submitted_by="tester")
    for job in vars(faulty_app).values():
        if hasattr(job, "handler"):
            job._app = faulty_app.app
            with contextlib.suppress(Exception):
                faulty_app.app.registry.add(job.handler)
    yield faulty_app
    await faulty_app.app.close()

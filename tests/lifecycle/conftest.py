"""One database per test process: each case puts a fresh run on an emptied stage."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import asyncpg
import pytest

from mainspring.store.database import Database

from .gated import GatedStage
from .verbs import Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.store.embedded import EmbeddedServer


@pytest.fixture(scope="session")
async def theatre(server: EmbeddedServer) -> AsyncIterator[Stage]:
    name = f"lifecycle_{uuid.uuid4().hex[:12]}"
    admin = await asyncpg.connect(server.dsn)
    await admin.execute(f"create database {name} template mainspring_template strategy file_copy")
    stage = await Stage.opens(Database(server.dsn_for(name)))
    yield stage
    await stage.closes()
    await admin.execute(f"drop database {name} with (force)")
    await admin.close()


@pytest.fixture
async def stage(theatre: Stage) -> Stage:
    await theatre.clear()
    return theatre


@pytest.fixture(scope="session")
async def gated_theatre(theatre: Stage) -> GatedStage:
    return await GatedStage.on(theatre)


@pytest.fixture
async def gated(gated_theatre: GatedStage) -> AsyncIterator[GatedStage]:
    yield gated_theatre
    await gated_theatre.clear()

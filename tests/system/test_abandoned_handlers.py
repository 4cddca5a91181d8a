"""Handlers that would not stop, in a worker inside an application: they do not keep the application."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from tests.waiting import PATIENCE

from .machinery import ROOT


async def test_an_application_ends_although_an_abandoned_handler_goes_on(url: str) -> None:
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "tests.system.abandoning_program"],
        cwd=ROOT,
        env=os.environ | {"MAINSPRING_DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )

    assert (ended.returncode, ended.stdout) == (0, "abandoned\n"), ended.stderr

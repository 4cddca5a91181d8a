"""Streams for code that is not async: nobody hangs who leaves one early, is interrupted, or closes the application."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

from tests.waiting import until

from mainspring import Mainspring
from mainspring.errors import MainspringError

PROGRAM = """
import os, signal, threading
from mainspring import Mainspring

app = Mainspring(submitted_by="tester")

@app.job
def add(a: int) -> int:
    return a

handle = add.submit_sync(a=1)
"""
LEFT = PROGRAM + "steps = handle.watch_sync()\nprint(next(steps).run.state)\n"
INTERRUPTED = (
    PROGRAM
    + """
try:
    for update in handle.watch_sync():
        print(update.run.state, flush=True)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
except KeyboardInterrupt:
    print("interrupted", handle.find_sync().state)
"""
)


def run(program: str, url: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"MAINSPRING_DATABASE_URL": url}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


async def test_a_program_that_leaves_a_stream_unfinished_ends(url: str) -> None:
    done = await asyncio.to_thread(run, LEFT, url)

    assert (done.returncode, done.stdout) == (0, "ready\n"), done.stderr


async def test_an_interrupt_inside_a_stream_is_an_interrupt(url: str) -> None:
    done = await asyncio.to_thread(run, INTERRUPTED, url)

    assert (done.returncode, done.stdout) == (0, "ready\ninterrupted ready\n"), done.stderr


async def test_closing_the_application_ends_the_waiting_of_other_threads(url: str) -> None:
    app = Mainspring(url, submitted_by="tester")

    @app.job
    def add(a: int) -> int:
        return a

    handle = await asyncio.to_thread(add.submit_sync, a=1)
    seen: list[str] = []

    def watch() -> None:
        steps = handle.watch_sync()
        seen.append(next(steps).run.state.value)
        try:
            next(steps)
        except MainspringError as error:
            seen.append(error.code)

    watcher = threading.Thread(target=watch)
    watcher.start()
    await until(lambda: seen == ["ready"])
    await asyncio.to_thread(app.close_sync)
    await until(lambda: not watcher.is_alive())

    assert seen == ["ready", "application-closed"]

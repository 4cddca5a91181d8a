"""A supervised worker process, when those around it or it itself fail."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from mainspring.app.child import EXIT_FAULT, Child, SupervisorChannel
from mainspring.worker.supervised import EXIT_DRAINED

PATIENCE = 60.0

FAULTY = """
import threading, time
from mainspring.app import child

async def fault(configuration):
    threading.Thread(target=time.sleep, args=(3600,)).start()  # a handler that would not stop
    raise RuntimeError("a fault of ours")

child.msgspec.json.decode = lambda *arguments, **options: None
child._main = fault
child.main()
"""


UNREAD = """
from mainspring.app import child

async def end(configuration):
    print("of which nobody is left to hear")
    return 0

child.msgspec.json.decode = lambda *arguments, **options: None
child._main = end
child.main()
"""


async def test_a_supervisor_that_was_killed_before_it_had_heard_all_is_known_to_be_gone() -> None:
    """What it had not read makes its end look like an error to us."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    nobody: Any = None
    child = Child(nobody, SupervisorChannel(ours), grace=0.0)
    writer.write(b"limit 1.000\n")
    await writer.drain()
    theirs.close()

    async with asyncio.timeout(PATIENCE):
        await child._listen(reader, nobody)
    assert child._stopping.is_set()
    writer.close()


def test_a_worker_process_ends_by_a_fault_although_a_thread_of_a_handler_goes_on() -> None:
    """Else it would be beaten for without end, with all the runs it holds."""
    environment = os.environ | {"MAINSPRING_CHILD": "{}"}
    done = subprocess.run(
        [sys.executable, "-c", FAULTY],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )

    assert done.returncode == EXIT_FAULT
    assert "a fault of ours" in done.stderr


def test_a_worker_process_whose_output_nobody_reads_ends_as_it_would_otherwise() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", UNREAD],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"MAINSPRING_CHILD": "{}", "PYTHONUNBUFFERED": ""},
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
    )
    os.close(writer)

    assert (done.returncode, done.stderr) == (EXIT_DRAINED, "")

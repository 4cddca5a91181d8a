"""The processes a benchmark starts: real workers and schedulers, and producers that submit to them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import msgspec

from benchmarks.producer import Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType


class Process:
    """A command that runs until told to stop; as a context, it is gone at the end, children and all."""

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        *,
        folder: Path | None = None,
        log: IO[str] | None = None,
        is_talkative: bool = False,
        patience: float = 30.0,  # for what it still has to do when told to stop
    ) -> None:
        self._patience = patience
        self.process = subprocess.Popen(
            command,
            env=os.environ | variables,
            cwd=folder,
            stdin=subprocess.PIPE if is_talkative else subprocess.DEVNULL,
            stdout=subprocess.PIPE if is_talkative else (log or sys.stderr),
            stderr=log,
            text=True,
            start_new_session=True,
        )

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(self._patience)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.process.pid)

    def peak_memory_mb(self) -> float:
        """The most memory that it has had, those of its children that live included."""
        return sum(_peak_memory_kb(each) for each in (self.process.pid, *descendants(self.process.pid))) / 1024

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class Worker(Process):
    """A real `mainspring worker` with its supervisor and children."""

    def __init__(self, url: str, *, app: str = "benchmarks.jobs:app", **settings: Any) -> None:
        settings = {"queues": ["bench"], "slots": 1000} | settings
        command = [sys.executable, "-m", "benchmarks.worker", app, msgspec.json.encode(settings).decode()]
        super().__init__(command, {"MAINSPRING_DATABASE_URL": url})


class Scheduler(Process):
    """A real `mainspring scheduler`."""

    def __init__(self, url: str) -> None:
        command = [sys.executable, "-m", "mainspring.cli", "scheduler"]
        super().__init__(command, {"MAINSPRING_DATABASE_URL": url})


class Submitting(Process):
    """A process that says when it is warm, submits when told to begin, and reports."""

    async def is_warm(self) -> None:
        """Wait until it is connected and has submitted a first batch."""
        await asyncio.to_thread(self._read_line)

    def begin(self) -> None:
        self._write_line()

    async def end(self) -> Report:
        """Let it end if it has not, and read what it did."""
        with contextlib.suppress(BrokenPipeError):
            self._write_line()
        return await self.report()

    async def report(self) -> Report:
        """Wait until it has carried out its orders."""
        return msgspec.json.decode(await asyncio.to_thread(self._read_line), type=Report)

    def _read_line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("A producer ended before its work was done.")
        return line

    def _write_line(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


class Producer(Submitting):
    """A process that submits as it is ordered (see `benchmarks.producer.Orders`)."""

    def __init__(self, url: str, **orders: Any) -> None:
        command = [sys.executable, "-m", "benchmarks.producer", msgspec.json.encode(orders).decode()]
        super().__init__(command, {"MAINSPRING_DATABASE_URL": url}, is_talkative=True)


def cpu_seconds(pid: int) -> float:
    """The processor time a process and all its descendants have used, those that ended included."""
    ticks = 0
    for each in (pid, *descendants(pid)):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _peak_memory_kb(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return 0


def descendants(pid: int) -> Iterable[int]:
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield int(child)
            yield from descendants(int(child))

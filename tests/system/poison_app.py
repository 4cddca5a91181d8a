"""The application of the isolation tests: handlers that do what no handler should.

`MAINSPRING_SABOTAGE` switches one mechanism of the engine off, for the controls.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import random
import re
import signal
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from types import ModuleType

from tests.system import sabotage

from mainspring import Context, Mainspring, RetryPolicy

sabotage.apply()
app = Mainspring()

ONCE = RetryPolicy(max_attempts=1)
TWICE = RetryPolicy(max_attempts=2, first_delay=timedelta(milliseconds=50))

if os.environ.get("POISON_APP_THREADS"):
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()


def misbehave(kind: str) -> None:
    if kind == "segfault":
        ctypes.string_at(0)
    elif kind == "exit":
        os._exit(3)
    elif kind == "abort":
        os.abort()
    elif kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "loop":
        while True:
            pass
    elif kind == "gil in C":
        mutex = ctypes.create_string_buffer(64)
        for _ in range(2):  # the second one waits for ever; no signal wakes it
            ctypes.PyDLL(None).pthread_mutex_lock(mutex)
    elif kind == "gil in re":
        re.match(r"(a+)+$", "a" * 64 + "!")


@app.job(isolated=True, retry=ONCE)
def poison(kind: str, started: str = os.devnull) -> None:
    Path(started).touch()
    misbehave(kind)


@app.job(isolated=True, retry=TWICE)
def poison_twice(kind: str) -> None:
    misbehave(kind)


@app.job(retry=TWICE)
def shared_poison(kind: str, started: str = os.devnull) -> None:
    Path(started).touch()
    misbehave(kind)


@app.job
async def nap(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "rested"


class Numpy(ModuleType):
    """As much of `numpy.random` as matters: a generator that knows nothing of forks."""

    def __init__(self) -> None:
        super().__init__("numpy.random")
        self.generator = random.Random(0)

    def seed(self) -> None:
        self.generator.seed()


numpy_random = Numpy()
if os.environ.get("POISON_APP_NUMPY"):
    sys.modules["numpy.random"] = numpy_random


@app.job(isolated=True)
def draw() -> list[float]:
    return [random.random(), numpy_random.generator.random()]


@app.job(isolated=True)
def isolated_nap(seconds: float, started: str = os.devnull) -> int:
    Path(started).touch()
    time.sleep(seconds)
    return os.getpid()


@app.job(isolated=True, retry=ONCE, memory="64MiB")
def eat_within_limit(mebibytes: int) -> int:
    return len(bytearray(mebibytes * 2**20))


@app.job(isolated=True, retry=ONCE)
def eat(mebibytes: int) -> int:
    return len(bytearray(mebibytes * 2**20))


@app.job(isolated=True, retry=ONCE, cpu=timedelta(seconds=1))
def spin(seconds: float) -> str:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    return "dizzy"


@app.job(isolated=True, retry=ONCE)
def spin_on(seconds: float) -> str:
    return str(spin(seconds))


# ── commands ────────────────────────────────────────────────────────────────────────────────────────────────────

SCRIPT = 'echo "$1"; echo "oops: $1" >&2; exit "$2"'
end_with = app.command("end-with", ["sh", "-c", SCRIPT, "sh", "{text}", "{code}"], retry=ONCE)
write = app.command("write", ["tee", "--", "{path}"], retry=ONCE, env={"GREETING": "hello"}, cwd="/")
where = app.command(
    "where", ["sh", "-c", 'echo "$GREETING $(pwd)" > "$1"', "sh", "{path}"], env={"GREETING": "hello"}, cwd="/usr"
)
missing = app.command("missing", ["no-such-program-at-all"], retry=ONCE)
nowhere = app.command("nowhere", ["true"], cwd="/no/such/folder", retry=ONCE)
crash = app.command("crash", ["sh", "-c", "kill -SEGV $$"], retry=ONCE)
sleep = app.command("sleep", ["sh", "-c", 'echo $$ >> "$1"; sleep 3600', "sh", "{pids}"], retry=ONCE)
overlong = app.command(
    "overlong", ["sh", "-c", 'trap "" TERM; echo $$ >> "$1"; sleep 3600', "sh", "{pids}"], retry=ONCE, timeout=0.5
)
greedy = app.command("greedy", [sys.executable, "-c", "len(bytearray(300_000_000))"], memory="200MB", retry=ONCE)


# ── families ────────────────────────────────────────────────────────────────────────────────────────────────────


def start_daemon(pids: Path) -> None:
    """The classic: fork, become the leader of a session, fork again; the orphan belongs to nobody."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            _note_pid(pids)
            time.sleep(3_600)
        os._exit(0)
    os.wait()


def _note_pid(pids: Path) -> None:
    with pids.open("a") as file:
        file.write(f"{os.getpid()}\n")


@app.job(isolated=True, retry=ONCE)
def beget(pids: str, seconds: float) -> str:
    """A daemon, a plain child, and a while of waiting."""
    start_daemon(Path(pids))
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _note_pid(Path(pids))
        time.sleep(3_600)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _note_pid(Path(pids))
    while len(Path(pids).read_text().splitlines()) < 3:
        time.sleep(0.01)
    time.sleep(seconds)
    return "done"


# ── being told ──────────────────────────────────────────────────────────────────────────────────────────────────


@app.job(isolated=True, retry=ONCE)
def polite(context: Context, started: str) -> str:
    Path(started).touch()
    while not context.is_cancelled:
        time.sleep(0.01)
    Path(started).write_text("told")
    context.raise_if_cancelled()
    return "unreachable"


@app.job(isolated=True, retry=ONCE)
async def polite_async(context: Context, started: str) -> str:
    Path(started).touch()
    try:
        await asyncio.sleep(3_600)
    finally:
        Path(started).write_text("told")
    return "unreachable"


@app.job(isolated=True, retry=ONCE)
def stubborn(started: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(started).touch()
    while True:
        pass


# ── saying things ───────────────────────────────────────────────────────────────────────────────────────────────


class Unlucky(LookupError):
    pass


@app.job(isolated=True, retry=ONCE)
def raise_unlucky() -> None:
    print("about to fail")
    raise Unlucky("thirteen")


@app.job(isolated=True, retry=ONCE)
def describe(context: Context, value: object) -> dict[str, object]:
    return {"run": str(context.run_id), "attempt": context.attempt, "fence": context.fence, "value": value}


@app.job(isolated=True, retry=ONCE)
def return_nonsense(kind: str) -> object:
    return float("nan") if kind == "nan" else "x" * 300_000 if kind == "large" else object()


@app.job(isolated=True, retry=ONCE)
def flood(mebibytes: int) -> str:
    """More output than any pipe holds, on both streams, with what might look like a frame."""
    for _ in range(mebibytes):
        sys.stdout.write('\x00\x00\x00\x1a{"type":"done","result":1}' * 40_000)
        sys.stderr.write("\x1b[31m" * 200_000)
    return "flooded"


@app.job(isolated=True, retry=ONCE)
def babble(data: str) -> str:
    """Bytes of our own into every socket there is."""
    for fd in range(3, 64):
        try:
            os.write(fd, data.encode("latin-1"))
        except OSError:
            continue
    time.sleep(3_600)
    return "unreachable"


@app.job(isolated=True, retry=ONCE)
def return_twice() -> str:
    """Forks, and both sides return."""
    return "child" if os.fork() == 0 else "parent"


@app.job(isolated=True, retry=ONCE)
def kill_the_zygote() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(3_600)


@app.job(isolated=True, retry=ONCE)
async def submit_another(seconds: float) -> str:
    return str((await nap.submit(seconds)).id)

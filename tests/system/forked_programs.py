"""Lets a process that has imported everything begin our own programs by a fork, without an interpreter of their own.

An interpreter that starts and imports takes half a second of a processor, and the fault tests start a thousand of them:
worker processes that are killed again and again, and their zygotes. What is forked is a process of its own. It has the
parent, the session, the environment and the descriptors that it would have, and nothing else of whoever started it: no
connections, no handlers of signals, no event loop. How the programs begin by themselves is tested without this:
wherever `mainspring worker` and `mainspring up` are.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from mainspring import wiring
from mainspring.app import child, zygote
from mainspring.wiring.processes import CHILD_MODULE
from mainspring.worker import supervised
from mainspring.worker.isolation import pool, processes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

FIRST_DESCRIPTOR = 3  # behind the standard streams
# Isolation is tested with applications of its own, whose zygotes begin as always.
WITH_FORKED_ZYGOTES = "tests.system.faulty_app"


def begin_programs_by_a_fork() -> None:
    """From now on, in this process and in those that it forks."""
    module = SimpleNamespace(**vars(subprocess) | {"Popen": ForkedProgram})
    for starter in (supervised, pool):
        setattr(starter, "subprocess", module)  # noqa: B010  which mypy takes for a module


class ForkedProgram(subprocess.Popen[Any]):
    """Forked where that is safe: with other threads about, one of them might hold a lock for ever."""

    def __init__(
        self, args: Sequence[str], *, env: Mapping[str, str], pass_fds: Sequence[int], start_new_session: bool
    ) -> None:
        self._main = _program(args[-1], env) if processes.count_threads() == 1 else None
        self._surroundings = env, pass_fds
        super().__init__(args, env=env, pass_fds=pass_fds, start_new_session=start_new_session)

    def _execute_child(self, args: Sequence[str], *others: Any) -> None:
        """As the one of `Popen`, which would execute another program."""
        if self._main is None:
            super()._execute_child(args, *others)  # type: ignore[misc]
            return
        sys.stdout.flush()
        sys.stderr.flush()
        # Until it has handlers of its own, a signal for the child would be told to its parent's event loop.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self.pid = os.fork()
            if self.pid == 0:
                _become(self._main, args, *self._surroundings)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self._child_created = True


def _program(module: str, env: Mapping[str, str]) -> Callable[[], None] | None:
    if module == CHILD_MODULE:
        return child.main
    if module == wiring.ZYGOTE_MODULE:
        configuration = msgspec.json.decode(env[wiring.ZYGOTE_VARIABLE], type=wiring.ZygoteConfiguration)
        return _zygote if configuration.app == f"{WITH_FORKED_ZYGOTES}:app" else None
    return None


def _zygote() -> None:
    del sys.modules[WITH_FORKED_ZYGOTES]  # it is the worker's; a zygote imports its own
    zygote.main()


def _become(main: Callable[[], None], words: Sequence[str], env: Mapping[str, str], kept: Collection[int]) -> NoReturn:
    try:
        gc.freeze()  # nothing that was the parent's is ever put away here: it would close descriptors of ours
        os.setsid()
        _forget_signals()
        _let_go_of_sockets(kept)
        asyncio._set_running_loop(None)
        os.environ.clear()
        os.environ.update(env)
        sys.argv = list(words)
        contextvars.Context().run(main)
    except SystemExit as leaving:
        os._exit(leaving.code if isinstance(leaving.code, int) else 1)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)


def _forget_signals() -> None:
    """As a new program has them: what was ignored stays so."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _let_go_of_sockets(kept: Collection[int]) -> None:
    """Their other ends see who is gone. The numbers stay taken: objects of the parent may still go by them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for entry in Path("/proc/self/fd").iterdir():
        number = int(entry.name)
        if number >= FIRST_DESCRIPTOR and number not in kept and _is_socket(entry):
            os.dup2(nothing, number, inheritable=False)
    os.close(nothing)


def _is_socket(entry: Path) -> bool:
    try:
        return os.readlink(entry).startswith("socket:")
    except OSError:  # the folder's own, which is closed by now
        return False

"""Handlers that are commands. An isolated child becomes the program; elsewhere, as in tests, one is started."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING, Any, NoReturn

from mainspring.errors import CommandFailed
from mainspring.model.actor import TENANT_VARIABLE
from mainspring.model.payload import printable
from mainspring.worker.current_attempt import current_tenant
from mainspring.worker.registry import handler_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mainspring.model.command import Command
    from mainspring.model.job import JobDefinition
    from mainspring.worker.registry import Handler

MAX_TAIL = 1_000  # of what it printed last, in the error


def handler_of_command(definition: JobDefinition, command: Command) -> Handler:
    def run(**arguments: str | int) -> dict[str, int]:
        try:
            done = subprocess.run(
                command.filled(arguments),
                env=_environment(command),
                cwd=command.cwd,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except OSError as error:
            raise not_started(command, error) from error
        return result_of(command, done.returncode)

    run.__name__ = run.__qualname__ = definition.name
    run.__doc__ = " ".join(command.argv)
    run.__signature__ = command.signature()  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in command.signature().parameters.values()}
    return handler_of(definition, run, command)


def _environment(command: Command) -> dict[str, str]:
    """That of the worker, and whose run it is: programs that speak to Mainspring act for that tenant."""
    tenant = current_tenant()
    whose = {} if tenant is None else {TENANT_VARIABLE: tenant.name}
    return {**os.environ, **whose, **command.env}


def become(command: Command, arguments: Mapping[str, Any], limit: Callable[[], None]) -> NoReturn:
    """Be this program from now on. `limit` is called when nothing of ours has to fit into its memory any more."""
    argv = command.filled(arguments)
    environment = _environment(command)
    try:
        if command.cwd is not None:
            os.chdir(command.cwd)
        program = shutil.which(argv[0], path=environment.get("PATH"))
        if program is None:
            raise FileNotFoundError(f"there is no program {argv[0]!r} in its PATH")
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and what is ignored stays so
            signal.signal(number, signal.SIG_DFL)
        limit()
        os.execve(program, argv, environment)
    except OSError as error:
        raise not_started(command, error) from error


def not_started(command: Command, error: OSError) -> CommandFailed:
    return CommandFailed(f"{command.program} could not be started: {error}.", code="command-not-started")


def result_of(command: Command, exit_code: int, tail: bytes = b"") -> dict[str, int]:
    """What a run of a command returns, unless it failed; `tail` is the end of what it printed."""
    if exit_code == 0:
        return {"exit_code": 0}
    last = printable(tail.decode(errors="replace").strip()[-MAX_TAIL:], MAX_TAIL)
    said = f": {last}" if last else "."
    raise CommandFailed(f"{command.program} ended with exit code {exit_code}{said}", exit_code=exit_code)

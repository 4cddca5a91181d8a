"""The entry point of a zygote: `python -m mainspring.app.zygote`, as a worker process starts it.

The application is imported here, once, and children are forked from it. If importing it starts threads, a fork could
inherit a lock that a vanished thread holds; then this program begins anew without the application, and every child
imports it for itself.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import sys
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import msgspec
import structlog

from mainspring import wiring
from mainspring.app.loading import load_app
from mainspring.app.logs import log_to_stderr
from mainspring.worker.isolation import child
from mainspring.worker.isolation.processes import count_threads
from mainspring.worker.isolation.zygote import Zygote

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.app.mainspring import Mainspring

log = structlog.get_logger()


def _loaded(configuration: wiring.ZygoteConfiguration) -> Mainspring:
    app = load_app(configuration.app)
    app.use(configuration.location)
    return app


def _run_child(channel: socket.socket, load: Callable[[], Mainspring]) -> NoReturn:
    app = load()
    child.run_child(channel, app.registry, app.close)


def _begin_anew(configuration: wiring.ZygoteConfiguration, threads: int) -> NoReturn:
    log.warning(
        "importing the application starts threads, so isolated runs each import it anew, which takes longer",
        app=configuration.app,
        threads=threads - 1,
        hint="Start threads on first use; numpy's stay away with OPENBLAS_NUM_THREADS=1.",
    )
    sys.stderr.flush()
    arguments, environment = dataclasses.replace(configuration, preload=False).command(
        wiring.ZYGOTE_MODULE, wiring.ZYGOTE_VARIABLE
    )
    os.execve(arguments[0], list(arguments), dict(environment))


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log_to_stderr()
    configuration = msgspec.json.decode(os.environ.pop(wiring.ZYGOTE_VARIABLE), type=wiring.ZygoteConfiguration)
    app = _loaded(configuration) if configuration.preload else None
    if app is not None and (threads := count_threads()) > 1:
        _begin_anew(configuration, threads)
    run_child = partial(_run_child, load=lambda: app or _loaded(configuration))
    Zygote(socket.socket(fileno=configuration.channel), run_child).run()


if __name__ == "__main__":
    main()

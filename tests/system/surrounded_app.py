"""An application with everything that may surround a handler, for isolated runs."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from mainspring import Context, Mainspring

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

app = Mainspring()


@app.on_start
def begin() -> None:
    print(f"start in {os.getpid()}")


@app.on_stop
async def end() -> None:
    print(f"stop in {os.getpid()}")


@app.resource
async def where() -> AsyncIterator[int]:
    print("open")
    yield os.getpid()
    print("close")


@app.resource
async def unneeded() -> AsyncIterator[int]:
    raise AssertionError("nobody asked for this")
    yield 1


@app.middleware
async def bracketed(context: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
    return {"run": str(context.run_id), "result": await call_next()}


@app.job(isolated=True)
async def look(*, where: int = where.injected) -> Any:  # the middleware makes something else of it
    return [where, os.getpid()]


@app.job(isolated=True)
def look_in_thread(*, where: int = where.injected) -> Any:  # the middleware makes something else of it
    return [where, os.getpid()]


@app.job(isolated=True)
async def fail(*, where: int = where.injected) -> None:
    raise ValueError("mine")


@app.job(isolated=True)
def wait_until_told(context: Context) -> None:
    print("waiting")
    while True:
        context.raise_if_cancelled()
        time.sleep(0.01)

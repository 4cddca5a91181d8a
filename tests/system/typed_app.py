"""An application whose isolated jobs take and return more than JSON knows."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  # read at run time, from the annotations
from typing import Any

from tests.values import Address, Order  # noqa: TC002  # read at run time, from the annotations

from mainspring import Context, Mainspring

app = Mainspring("postgresql://nowhere.invalid/none")


@app.job(isolated=True)
def load(order: Order, files: set[Path]) -> dict[Path, Order]:
    return {file: order.model_copy() for file in files}


@app.job(isolated=True)
async def load_async(order: Order, files: set[Path]) -> dict[Path, Order]:
    return {file: order.model_copy() for file in files}


@app.job(isolated=True)
def forget() -> Address:
    return None  # type: ignore[return-value]


@app.job(isolated=True)
def whose(context: Context) -> list[Any]:
    """For whom the code of an isolated run acts."""
    return [context.tenant, app.actor.tenant, app.actor.tenant_name]

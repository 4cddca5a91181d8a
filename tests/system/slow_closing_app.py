"""An application whose workers take their time to close: until they may."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from mainspring import Mainspring

app = Mainspring()


@app.on_stop
async def close() -> None:
    while not Path(os.environ["MAY_CLOSE"]).exists():
        await asyncio.sleep(0.01)
    sys.stderr.write("slowly closed\n")


@app.job
async def nothing() -> None: ...

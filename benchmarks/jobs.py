"""The application that benchmarks run: as little work as possible, so that what is measured is Mainspring."""

from __future__ import annotations

from mainspring import Mainspring

app = Mainspring()


@app.job(queue="bench")
async def noop(customer: int, plan: str, note: str) -> None:
    """Does nothing with one small payload."""


CALL = {"customer": 12345, "plan": "pro", "note": "x" * 60}

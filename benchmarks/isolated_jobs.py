"""The application of the isolation benchmark. Apart from the others: its workers have processes to start more."""

from __future__ import annotations

from mainspring import Mainspring

app = Mainspring()


@app.job(queue="isolated", isolated=True)
def isolated_noop(customer: int, plan: str, note: str) -> None:
    """Does nothing in a process of its own."""

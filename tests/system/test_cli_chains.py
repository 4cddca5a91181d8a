"""`mainspring chain …`, as programs and people meet it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mainspring import After
from mainspring.testing import run_until_idle

from .test_cli import mainspring

if TYPE_CHECKING:
    from mainspring import Mainspring


@pytest.fixture
async def chained(app: Mainspring, url: str) -> tuple[str, str]:
    """Two jobs that follow a third, and which database they are in."""

    @app.job
    async def load() -> int:
        return 7

    @app.job(after=After("load", result="rows"))
    async def report(rows: int) -> None: ...

    @app.job(after="load", on="failure")
    async def alarm() -> None: ...

    await load.submit()
    await run_until_idle(app)
    return "--database-url", url


async def test_chains_are_listed_for_people_and_for_programs(chained: tuple[str, str]) -> None:
    listed = mainspring("chain", "list", *chained)
    document = mainspring("chain", "list", *chained, "-o", "json").document

    assert [line.split()[:5] for line in listed.out.splitlines()[1:]] == [
        ["load", "failure", "alarm", "–", "active"],
        ["load", "success", "report", "rows", "active"],
    ]
    assert [(each["downstream"], each["on"]) for each in document["chains"]] == [
        ("alarm", "failure"),
        ("report", "success"),
    ]


async def test_a_chain_is_paused_and_goes_on(chained: tuple[str, str]) -> None:
    paused = mainspring("chain", "pause", "load", "report", "--reason", "being mended", *chained)
    assert paused.out == "report after load, on success: paused\n"
    assert "being mended" in mainspring("chain", "list", *chained).out
    resumed = mainspring("chain", "resume", "load", "report", *chained, "-o", "json").document
    assert resumed["chain"]["is_paused"] is False


async def test_a_chain_is_removed_and_one_that_is_not_there_is_refused(chained: tuple[str, str]) -> None:
    removed = mainspring("chain", "remove", "load", "alarm", *chained)
    again = mainspring("chain", "remove", "load", "alarm", *chained)

    assert removed.out == "removed; if code declares it, it comes back with the next start\n"
    assert (again.code, "chain-not-found" in again.err) == (1, True)


async def test_a_run_says_after_which_it_came(app: Mainspring, chained: tuple[str, str]) -> None:
    (follower,) = mainspring("run", "list", "--job", "report", *chained, "-o", "json").document["runs"]
    (load,) = mainspring("run", "list", "--job", "load", *chained, "-o", "json").document["runs"]

    shown = mainspring("run", "show", follower["id"], *chained)

    assert f"triggered by  {load['id']}" in shown.out
    assert "by after load" in shown.out


async def test_without_chains_it_says_how_to_make_one(url: str) -> None:
    listed = mainspring("chain", "list", "--database-url", url)

    assert listed.out == 'No chains. Jobs declare them: @app.job(after="load").\n'

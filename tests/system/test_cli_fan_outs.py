"""What `run show`, `run explain` and `flow show` say about runs and their children."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mainspring import RetryPolicy
from mainspring.testing import run_until_idle

from .test_cli import HOSTILE, mainspring, refused

if TYPE_CHECKING:
    from mainspring import Mainspring
    from mainspring.app.handle import Handle


@pytest.fixture
async def album(app: Mainspring) -> Handle[Any]:
    """A run with two children, one of which waits; its name is hostile."""

    @app.job
    async def resize(picture: int) -> int:
        return picture

    @app.job
    async def album() -> int:
        await resize.options(child=True).submit(1)
        await resize.options(child=HOSTILE[:90], delay=3600).submit(2)
        return 2

    flow = app.flow("pictures")
    node = flow.add(album)
    submitted = await flow.submit()
    await run_until_idle(app)
    return submitted.run(node)


async def test_a_run_is_shown_with_its_children(url: str, album: Handle[Any]) -> None:
    children = (await album.find()).children
    waiting = next(child for child in children if child.state == "scheduled")

    shown = mainspring("run", "show", str(album.id), "--database-url", url)
    document = mainspring("run", "show", str(album.id), "--database-url", url, "-o", "json").document
    child = mainspring("run", "show", str(waiting.run_id), "--database-url", url)

    assert "held (children)" in shown.out
    assert "children   1 succeeded, 1 scheduled" in shown.out
    assert str(waiting.run_id) in shown.out
    assert "\x1b" not in shown.out
    assert [each["state"] for each in document["children"]] == [each.state for each in children]
    assert f"child of   {album.id}" in child.out


async def test_a_run_that_waits_for_its_children_is_explained(url: str, album: Handle[Any]) -> None:
    waiting = next(child for child in (await album.find()).children if child.state == "scheduled")

    answer = mainspring("run", "explain", str(album.id), "--database-url", url)
    document = mainspring("run", "explain", str(album.id), "--database-url", url, "-o", "json").document

    assert f"it waits for 1 of its 2 children: run {waiting.run_id}, which is scheduled" in answer.out
    assert f"mainspring run explain {waiting.run_id}" in answer.out
    assert document["gate"] == "children"


async def test_a_flow_is_shown_with_how_many_children_its_nodes_have(url: str, album: Handle[Any]) -> None:
    listed = mainspring("flow", "list", "--database-url", url, "-o", "json").document
    shown = mainspring("flow", "show", listed["flows"][0]["id"], "--database-url", url)

    assert shown.out.splitlines()[1] == "◌ album  held  (2 children: 1 succeeded, 1 scheduled)"


async def test_a_cancelled_run_takes_its_children_with_it(url: str, app: Mainspring, album: Handle[Any]) -> None:
    mainspring("run", "cancel", str(album.id), "--database-url", url)
    await run_until_idle(app)

    shown = mainspring("run", "show", str(album.id), "--database-url", url)
    assert "children   1 succeeded, 1 cancelled" in shown.out


async def test_a_retried_flow_requeues_the_children_that_failed(url: str, app: Mainspring) -> None:
    broken, done = {2}, list[int]()

    @app.job(retry=RetryPolicy(max_attempts=1))
    async def resize(picture: int) -> None:
        done.append(picture)
        if picture in broken:
            raise ValueError("no such picture")

    @app.job(retry=RetryPolicy(max_attempts=1))
    async def resize_album() -> None:
        await resize.options(child=True).submit_many({"picture": picture} for picture in (1, 2))

    drawn = app.flow("pictures")
    drawn.add(resize_album)
    flow = await drawn.submit()
    await run_until_idle(app)
    shown = mainspring("flow", "show", str(flow.id), "--database-url", url)
    assert shown.out.splitlines()[1] == "✗ resize_album  dead  (2 children: 1 succeeded, 1 dead)"

    broken.clear()
    retried = mainspring("flow", "retry", str(flow.id), "--reason", "found it", "--database-url", url)
    assert retried.out.splitlines()[1].endswith("ready  (2 children: 1 succeeded, 1 ready)")
    await run_until_idle(app)

    over = mainspring("flow", "wait", str(flow.id), "--database-url", url, "-o", "json").document
    assert (over["state"], sorted(done)) == ("succeeded", [1, 2, 2])
    assert refused("flow", "retry", str(flow.id), "--database-url", url)["code"] == "nothing-to-retry"

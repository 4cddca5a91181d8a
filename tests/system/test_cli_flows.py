"""`mainspring flow …` and what `run explain` says about runs that wait for others, as programs and people meet them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .test_cli import HOSTILE, mainspring, refused

if TYPE_CHECKING:
    from mainspring import FlowHandle, Mainspring


@pytest.fixture
async def flow(app: Mainspring) -> FlowHandle:
    """Two runs, the second of which waits for the first; its name is hostile."""

    @app.job
    async def extract(part: int) -> int:
        return part

    drawn = app.flow("report")
    first = drawn.add(extract.options(delay=3600), 1)
    drawn.add(extract, first.output).named(HOSTILE)
    return await drawn.submit()


async def test_flows_are_listed_and_shown_for_people_and_for_programs(url: str, flow: FlowHandle) -> None:
    listed = mainspring("flow", "list", "--database-url", url)
    shown = mainspring("flow", "show", str(flow.id), "--database-url", url)
    drawn = mainspring("flow", "show", str(flow.id), "--mermaid", "--database-url", url)
    document = mainspring("flow", "show", str(flow.id), "--database-url", url, "-o", "json").document

    assert listed.out.splitlines()[1].split()[:5] == [str(flow.id), "report", "running", "2", "0"]
    assert shown.out.splitlines()[0] == "flow report  running  1 scheduled, 1 held"
    assert shown.out.splitlines()[1] == "◷ extract  scheduled"
    assert shown.out.splitlines()[2].startswith("└─ ◌ ")
    assert "\x1b" not in shown.out + drawn.out
    assert drawn.out.startswith("flowchart TD\n")
    assert (document["state"], document["counts"]) == ("running", {"scheduled": 1, "held": 1})
    assert document["nodes"][1]["after"] == ["extract"]


async def test_a_run_that_waits_for_another_one_is_explained(url: str, flow: FlowHandle) -> None:
    first, second = [node.run_id for node in (await flow.find()).nodes]

    answer = mainspring("run", "explain", str(second), "--database-url", url)

    assert f"it waits until run {first} succeeds, which is scheduled" in answer.out
    assert f"mainspring run explain {first}" in answer.out


async def test_a_flow_is_cancelled_and_retried(url: str, flow: FlowHandle) -> None:
    cancelled = mainspring("flow", "cancel", str(flow.id), "--reason", "wrong month", "--database-url", url)
    assert cancelled.out.splitlines()[0] == "flow report  cancelled  2 cancelled"
    over = mainspring("flow", "wait", str(flow.id), "--database-url", url, "-o", "json")
    assert over.document["state"] == "cancelled"

    retried = mainspring("flow", "retry", str(flow.id), "--database-url", url, "-o", "json").document
    assert retried["counts"] == {"ready": 1, "held": 1}
    assert refused("flow", "retry", str(flow.id), "--database-url", url)["code"] == "nothing-to-retry"


async def test_all_of_a_large_flow_is_shown_if_asked_for(url: str, app: Mainspring) -> None:
    @app.job
    async def wait() -> None: ...

    large = app.flow("large")
    large.map(wait.options(delay=3600), [{}] * 501)
    submitted = await large.submit()

    show = ("flow", "show", str(submitted.id), "--database-url", url)
    assert mainspring(*show).out.splitlines()[-1] == "… and 301 more: 301 scheduled"
    assert len(mainspring(*show, "--all").out.splitlines()) == 502
    assert "wait-501<br/>" in mainspring(*show, "--all", "--mermaid").out


async def test_a_flow_that_is_not_there_is_refused(url: str, app: Mainspring) -> None:
    await app.services()
    assert refused("flow", "show", "nonsense", "--database-url", url)["code"] == "invalid-flow-id"
    unknown = "0199a1b2-c3d4-8005-9f00-0123456789ab"
    assert refused("flow", "cancel", unknown, "--database-url", url)["code"] == "flow-not-found"

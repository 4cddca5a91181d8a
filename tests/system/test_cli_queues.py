"""`mainspring queue …`, `worker drain` and `top`, as programs and people meet them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from .test_cli import HOSTILE, mainspring

if TYPE_CHECKING:
    from mainspring import Mainspring


@pytest.fixture
async def mail(app: Mainspring) -> None:
    @app.job(queue="mail")
    async def send(n: int) -> int:
        raise ValueError(HOSTILE)

    await send.submit_many([{"n": n} for n in range(3)])


@pytest.mark.usefixtures("mail")
async def test_queues_are_listed_for_people_and_for_programs(url: str) -> None:
    shown = mainspring("queue", "list", "--database-url", url)
    (queue,) = mainspring("queue", "list", "--database-url", url, "-o", "json").document["queues"]

    assert shown.out.splitlines()[0].split()[:3] == ["queue", "depth", "oldest"]
    assert shown.out.splitlines()[1].split()[:2] == ["mail", "3"]
    assert (queue["name"], queue["depth"], queue["slots"], queue["wanted_slots"]) == ("mail", 3, 0, 1)
    assert queue["oldest_seconds"] > 0


async def test_what_waits_for_its_time_is_shown_wherever_queues_are(url: str, app: Mainspring) -> None:
    @app.job(queue="mail")
    async def send(n: int) -> int:
        return n

    await send.options(delay=3600).submit_many([{"n": n} for n in range(1200)])
    listed = mainspring("queue", "list", "--database-url", url)
    (queue,) = mainspring("queue", "list", "--database-url", url, "-o", "json").document["queues"]
    pressure = mainspring("queue", "pressure", "mail", "--database-url", url)
    document = mainspring("queue", "pressure", "mail", "--database-url", url, "-o", "json").document["pressure"]
    top = mainspring("top", "--database-url", url)

    assert listed.out.splitlines()[0].split()[-2:] == ["scheduled", "due/s"]
    assert listed.out.splitlines()[1].split()[-2:] == ["1,200", "–"]
    assert (queue["depth"], queue["scheduled"], queue["promoted_per_s"]) == (0, 1200, None)
    assert pressure.out.endswith("; 1,200 wait for their time\n")
    assert (document["scheduled"], document["promoted_per_s"]) == (1200, None)
    assert "scheduled  due/s" in top.out


@pytest.mark.usefixtures("mail")
async def test_a_queue_is_paused_and_resumed(url: str) -> None:
    assert mainspring("queue", "pause", "mail", "--reason", "x", "--database-url", url).out == "paused\n"
    assert mainspring("queue", "pause", "mail", "--database-url", url).out == "it was paused before\n"
    assert "paused" in mainspring("queue", "list", "--database-url", url).out
    answer = mainspring("queue", "resume", "mail", "--database-url", url, "-o", "json")
    assert answer.document == {"queue": "mail", "paused": False, "changed": True}


@pytest.mark.usefixtures("mail")
async def test_a_queue_that_is_not_there_is_an_error(url: str) -> None:
    answer = mainspring("queue", "pause", "mali", "--database-url", url, "-o", "json")

    assert (answer.code, answer.error["code"]) == (1, "queue-not-found")


async def test_a_worker_that_is_not_there_cannot_be_drained(url: str) -> None:
    one = mainspring("worker", "drain", str(uuid4()), "--database-url", url, "-o", "json")
    host = mainspring("worker", "drain", "--host", "nowhere", "--database-url", url, "-o", "json")
    neither = mainspring("worker", "drain", "--database-url", url, "-o", "json")

    assert [each.error["code"] for each in (one, host, neither)] == [
        "worker-not-found",
        "worker-not-found",
        "worker-or-host",
    ]


async def test_bounds_for_processes_are_two_numbers(url: str) -> None:
    answer = mainspring("worker", "--app", "examples.hello:app", "--autoscale", "many", "--database-url", url)

    assert answer.code == 1
    assert "autoscale" in answer.err
    assert "For example 1:8." in answer.err


@pytest.mark.usefixtures("mail")
async def test_top_shows_one_picture_where_there_is_no_terminal(url: str) -> None:
    shown = mainspring("top", "--database-url", url).out
    document = mainspring("top", "--database-url", url, "-o", "json").document

    assert "ready 3" in shown
    assert "mail" in shown
    assert document["counts"]["ready"] == 3
    assert [queue["name"] for queue in document["queues"]] == ["mail"]
    assert document["failures"] == []

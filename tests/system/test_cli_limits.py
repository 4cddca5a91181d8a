"""`mainspring limit …` and what `run explain` says about limits, as programs and people meet them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import until

from mainspring import Limit

from .test_cli import HOSTILE, mainspring

if TYPE_CHECKING:
    import asyncpg

    from mainspring import Mainspring


@pytest.fixture
async def handles(app: Mainspring, connection: asyncpg.Connection[asyncpg.Record]) -> list[Any]:
    """Three runs of one customer, whose name is hostile, and one of another; one at a time each."""

    @app.job(queue="mail", limit=Limit(1, key="customer"))
    async def send(customer: str) -> None: ...

    handles = await send.submit_many([{"customer": customer} for customer in (HOSTILE, HOSTILE, HOSTILE, "acme")])
    await until(lambda: connection.fetchval("select count(*) = 2 from ready"))
    return handles


@pytest.mark.usefixtures("handles")
async def test_limits_are_listed_and_shown_for_people_and_for_programs(url: str) -> None:
    listed = mainspring("limit", "list", "--database-url", url)
    (limit,) = mainspring("limit", "list", "--database-url", url, "-o", "json").document["limits"]
    shown = mainspring("limit", "show", "--job", "send", "--key", "customer", "--database-url", url)
    document = mainspring(
        "limit", "show", "--job", "send", "--key", "customer", "--database-url", url, "-o", "json"
    ).document

    assert listed.out.splitlines()[0].split()[:4] == ["limit", "by", "at", "once"]
    assert listed.out.splitlines()[1].split()[:6] == ["job", "send", "customer", "1", "–", "priority"]
    assert (limit["scope"], limit["most"], limit["holding"], limit["waiting"]) == ("job", 1, 2, 2)
    assert (limit["is_declared"], limit["is_as_declared"]) == (True, True)
    assert "at most 1 at once for each value of customer; 2 hold a slot, 2 wait" in shown.out
    assert [(each["waiting"], len(each["holders"])) for each in document["values"]] in (
        [(2, 1), (0, 1)],
        [(0, 1), (2, 1)],
    )
    assert "\x1b" not in shown.out.replace("\x1b[", "")


@pytest.mark.usefixtures("handles")
async def test_a_limit_is_set_and_removed(url: str) -> None:
    answer = mainspring("limit", "set", "5", "--queue", "mail", "--reason", "slow", "--database-url", url)
    assert answer.out == "queue mail: at most 5 at once; 0 hold a slot, 0 wait\n"
    strict = ("limit", "set", "2", "--job", "send", "--order", "strict", "--on-dead", "halt", "--database-url", url)
    assert "in the order of acceptance, stopping behind dead letters" in mainspring(*strict).out
    assert mainspring("limit", "remove", "--queue", "mail", "--database-url", url).out == "removed\n"
    declared = ("limit", "remove", "--job", "send", "--key", "customer", "--database-url", url)
    assert mainspring(*declared).out == "removed; the code declares it, so it comes back with the next start\n"
    limits = mainspring("limit", "list", "--database-url", url, "-o", "json").document["limits"]
    assert [(each["key"], each["most"]) for each in limits] == [(None, 2)]


@pytest.mark.parametrize("kind", ["limit", "backlog"])
@pytest.mark.parametrize("act", [("set", "1"), ("show",), ("remove",)], ids=lambda act: act[0])
async def test_a_rule_for_all_runs_has_to_be_asked_for(url: str, kind: str, act: tuple[str, ...]) -> None:
    words = (kind, *act, "--database-url", url, "-o", "json")
    forgotten = mainspring(*words)
    assert (forgotten.code, forgotten.error["code"], forgotten.error["fields"]) == (2, "usage", {"field": "all-runs"})
    assert "--all-runs is for all runs of the tenant" in forgotten.error["hint"]

    both = mainspring(*words, "--all-runs", "--job", "send")
    assert (both.code, both.error["message"]) == (
        2,
        "--all-runs and --job were both given; they exclude each other.",
    )
    assert mainspring(kind, "list", "--database-url", url, "-o", "json").document == {f"{kind}s": []}


@pytest.mark.parametrize("kind", ["limit", "backlog"])
async def test_a_rule_for_all_runs_is_set_shown_and_removed_if_asked_for(url: str, kind: str) -> None:
    for act in (("set", "5"), ("show",), ("remove",)):
        answer = mainspring(kind, *act, "--all-runs", "--database-url", url)
        assert (answer.code, "all runs: at most 5 " in answer.out or act == ("remove",)) == (0, True), answer


async def test_what_is_wrong_with_a_limit_is_said(url: str, handles: list[Any]) -> None:
    wrong = {
        ("set", "0", "--job", "send"): "invalid-limit",
        ("set", "1", "--job", "sned"): "job-not-found",
        ("set", "1", "--queue", "mali"): "queue-not-found",
        ("set", "1", "--job", "send", "--queue", "mail"): "limit-of-two",
        ("set", "1", "--job", "send", "--key", "__import__('os')"): "invalid-limit-key",
        ("set", "1", "--all-runs", "--on-dead", "halt"): "halt-without-order",
        ("remove", "--queue", "mail"): "limit-not-found",
        ("show", "--job", "send"): "limit-not-found",
    }
    for words, code in wrong.items():
        answer = mainspring("limit", *words, "--database-url", url, "-o", "json")
        assert (answer.code, answer.error["code"]) == (1, code), words


async def test_a_run_that_waits_for_a_slot_says_so(
    url: str, handles: list[Any], connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    waiting = await connection.fetchval("select id from held limit 1")

    shown = mainspring("run", "explain", str(waiting), "--database-url", url)
    document = mainspring("run", "explain", str(waiting), "--database-url", url, "-o", "json").document

    assert "at most 1 of job send may execute at once for customer" in " ".join(shown.out.split())
    assert "at its limit" in shown.out
    assert "earliest as soon as " in " ".join(shown.out.split())
    assert document["gate"] == "limit"
    assert document["remedy"] == "mainspring limit show --job send --key customer"

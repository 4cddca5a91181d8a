"""`mainspring backlog …` and what `run submit` says about backlogs, as programs and people meet them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mainspring import Backlog

from .test_cli import HOSTILE, mainspring

if TYPE_CHECKING:
    from mainspring import Mainspring


@pytest.fixture
async def handles(app: Mainspring) -> list[Any]:
    """Three runs of one customer, whose name is hostile, and one of another."""

    @app.job(queue="mail", backlog=Backlog(3, key="customer"))
    async def send(customer: str) -> None: ...

    return await send.submit_many([{"customer": customer} for customer in (HOSTILE, HOSTILE, HOSTILE, "acme")])


async def test_caps_are_listed_and_shown_for_people_and_for_programs(url: str, handles: list[Any]) -> None:
    listed = mainspring("backlog", "list", "--database-url", url)
    (cap,) = mainspring("backlog", "list", "--database-url", url, "-o", "json").document["backlogs"]
    of_send = ("backlog", "show", "--job", "send", "--key", "customer", "--database-url", url)
    shown, document = mainspring(*of_send), mainspring(*of_send, "-o", "json").document

    assert listed.out.splitlines()[1].split()[:6] == ["job", "send", "customer", "3", "refuse", "4"]
    assert (cap["most"], cap["when_full"], cap["waiting"], cap["is_as_declared"]) == (3, "refuse", 4, True)
    assert "at most 3 wait for each value of customer, what comes too much is refused; 4 wait" in shown.out
    assert [each["waiting"] for each in document["values"]] == [3, 1]
    assert document["values"][0]["oldest"] == str(handles[0].id)
    assert "\x1b" not in shown.out.replace("\x1b[", "")


@pytest.mark.usefixtures("handles")
async def test_a_cap_is_set_and_removed(url: str) -> None:
    answer = mainspring("backlog", "set", "50", "--queue", "mail", "--reason", "slow", "--database-url", url)
    assert answer.out == "queue mail: at most 50 wait, what comes too much is refused; 0 wait\n"
    other = ("backlog", "set", "2", "--all-runs", "--when-full", "drop_oldest", "--database-url", url)
    assert mainspring(*other).out.startswith("all runs: at most 2 wait, then the run that waits longest is dropped")
    assert mainspring("backlog", "remove", "--queue", "mail", "--database-url", url).out == "removed\n"
    declared = ("backlog", "remove", "--job", "send", "--key", "customer", "--database-url", url)
    assert mainspring(*declared).out == "removed; the code declares it, so it comes back with the next start\n"
    assert len(mainspring("backlog", "list", "--database-url", url, "-o", "json").document["backlogs"]) == 1


@pytest.mark.usefixtures("handles")
async def test_whoever_submits_is_told_that_it_is_nearly_full_and_then_that_it_is(url: str) -> None:
    submit = ("run", "submit", "send", "--arg", "customer=acme", "--database-url", url)
    mainspring(*submit)
    near = mainspring(*submit)
    full = mainspring(*submit, "-o", "json")

    assert "a backlog is nearly full: job send by customer=acme: 3 of at most 3 runs wait" in near.err
    assert (full.code, full.error["code"]) == (1, "backlog-full")
    assert full.error["fields"]["waiting"] == full.error["fields"]["most"] == 3


@pytest.mark.usefixtures("handles")
async def test_what_is_wrong_with_a_cap_is_said(url: str) -> None:
    wrong = {
        ("set", "0", "--job", "send"): "invalid-backlog",
        ("set", "9000000", "--job", "send"): "invalid-backlog",
        ("set", "1", "--job", "sned"): "job-not-found",
        ("set", "1", "--queue", "mali"): "queue-not-found",
        ("set", "1", "--job", "send", "--queue", "mail"): "limit-of-two",
        ("set", "1", "--job", "send", "--key", "__import__('os')"): "invalid-backlog-key",
        ("remove", "--queue", "mail"): "backlog-cap-not-found",
        ("show", "--job", "send"): "backlog-cap-not-found",
    }
    for words, code in wrong.items():
        answer = mainspring("backlog", *words, "--database-url", url, "-o", "json")
        assert (answer.code, answer.error["code"]) == (1, code), words

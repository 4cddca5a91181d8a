"""`mainspring breaker …` and what `run explain` says about circuit breakers, as programs and people meet them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mainspring import Breaker, RetryPolicy
from mainspring.testing import run_until_idle

from .test_cli import HOSTILE, mainspring

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring import Mainspring


@pytest.fixture
async def waiting(app: Mainspring) -> UUID:
    """A run that waits for a breaker, which is open for a customer with a hostile name."""

    @app.job(breaker=Breaker(2, key="customer"), retry=RetryPolicy(max_attempts=1))
    async def send(customer: str) -> None:
        raise ConnectionError(f"{customer} is away")

    await send.submit_many([{"customer": HOSTILE}] * 2)
    await run_until_idle(app)
    handle = await send.submit(customer=HOSTILE)
    await run_until_idle(app)
    return handle.id


@pytest.mark.usefixtures("waiting")
async def test_breakers_are_listed_and_shown_for_people_and_for_programs(url: str) -> None:
    listed = mainspring("breaker", "list", "--database-url", url)
    (breaker,) = mainspring("breaker", "list", "--database-url", url, "-o", "json").document["breakers"]
    shown = mainspring("breaker", "show", "--job", "send", "--database-url", url)
    document = mainspring("breaker", "show", "--job", "send", "--database-url", url, "-o", "json").document

    assert listed.out.splitlines()[0].split()[:4] == ["job", "by", "opens", "after"]
    assert listed.out.splitlines()[1].split()[:6] == ["send", "customer", "2", "in", "1m", "open"]
    assert (breaker["state"], breaker["open_values"], breaker["waiting"]) == ("open", 1, 1)
    assert (breaker["is_declared"], breaker["is_as_declared"]) == (True, True)
    assert "job send: opens after 2 in 1m for each value of customer, first probe after 30s" in shown.out
    assert "open for 1 value, 1 wait" in shown.out
    assert [each["action"] for each in document["history"]] == ["breaker.open", "breaker.set"]
    assert "\x1b" not in shown.out.replace("\x1b[", "")


async def test_explain_names_the_breaker_and_its_remedy_closes_it(url: str, waiting: UUID) -> None:
    told = mainspring("run", "explain", str(waiting), "--database-url", url, "-o", "json").document
    value = mainspring("breaker", "show", "--job", "send", "--database-url", url, "-o", "json").document["breaker"][
        "openings"
    ][0]["value"]

    assert told["gate"] == "breaker"
    assert told["remedy"].startswith("mainspring breaker close --job send --value ")
    close = ("breaker", "close", "--job", "send", "--value", value, "--database-url", url)
    assert mainspring(*close).out == "closed for 1 value\n"
    assert mainspring(*close).out == "it was not open\n"


@pytest.mark.usefixtures("waiting")
async def test_a_breaker_is_set_opened_closed_and_removed(url: str) -> None:
    where = ("--job", "send", "--database-url", url)
    answer = mainspring(
        "breaker", "set", "--failures", "9", "--within", "5m", "--failure-ratio", "0.5", "--reason", "x", *where
    )
    assert answer.out == (
        "job send: opens after 9 in 5m and 50%, first probe after 30s, then up to 10m; closed, 0 wait\n"
    )
    opened = mainspring("breaker", "open", "--no-probes", "--reason", "they move", *where, "-o", "json").document
    assert opened["breaker"]["openings"][0]["next_probe_at"] is None
    assert opened["breaker"]["openings"][0]["reason"] == "they move"
    assert mainspring("breaker", "close", *where, "-o", "json").document == {"closed": 1}
    assert "comes back with the next start" in mainspring("breaker", "remove", *where).out
    assert mainspring("breaker", "list", "--database-url", url).out.startswith("No circuit breakers.")


@pytest.mark.usefixtures("waiting")
async def test_bad_input_is_refused(url: str) -> None:
    refusals = {
        ("show", "--job", "nobody"): "job-not-found",
        ("set", "--job", "send", "--failures", "0"): "invalid-failures",
        ("set", "--job", "send", "--failure-ratio", "2"): "invalid-failure-ratio",
        ("set", "--job", "send", "--within", "soon"): "invalid-within",
        ("open", "--job", "send", "--value", ""): "invalid-value",
        ("open", "--job", "send", "--value", "x" * 100_000): "invalid-value",
    }
    for words, code in refusals.items():
        answer = mainspring("breaker", *words, "--database-url", url, "-o", "json")
        assert (answer.code, answer.error["code"]) == (1, code), words

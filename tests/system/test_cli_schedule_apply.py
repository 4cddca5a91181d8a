"""`mainspring schedule apply`: what it says about the schedules of an application's code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from mainspring.store import workers

from .test_cli import mainspring

if TYPE_CHECKING:
    from pathlib import Path

    from mainspring.store.connection import Connection

SHOP = """
from mainspring import Mainspring

app = Mainspring()

{jobs}
"""
JOB = """
@app.job(schedule="{when}", catch_up="{catch_up}")
async def {name}(copies: int = {copies}) -> None: ...
"""


class Shop:
    """An application, in the versions that are deployed one after the other."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder, self._url = folder, url

    def declares(self, *names: str, when: str = "0 9 * * *", catch_up: str = "latest", copies: int = 1) -> None:
        jobs = "".join(JOB.format(name=name, when=when, catch_up=catch_up, copies=copies) for name in names)
        (self._folder / "shop.py").write_text(SHOP.format(jobs=jobs))

    def applies(self, *words: str) -> str:
        return str(self._answer(*words).out)

    def document(self, *words: str) -> Any:
        return self._answer(*words, "-o", "json").document

    def _answer(self, *words: str) -> Any:
        answer = mainspring(
            "schedule", "apply", "--app", "shop:app", "--database-url", self._url, *words, cwd=self._folder
        )
        assert answer.code == 0, answer
        return answer


@pytest.fixture
def shop(tmp_path: Path, url: str) -> Shop:
    shop = Shop(tmp_path, url)
    shop.declares("report")
    shop.applies()
    return shop


async def test_a_change_names_what_is_different(shop: Shop) -> None:
    shop.declares("report", catch_up="all", copies=2)

    said = shop.applies("--dry-run")

    assert said.splitlines() == [
        "report: changed",
        "  catch-up: latest within PT24H → all within PT24H",
        '  arguments: {"copies":1} → {"copies":2}',
        "Nothing was written: this was a dry run.",
    ]
    document = shop.document("--dry-run")
    assert document["is_dry_run"] is True
    assert [each["what"] for each in document["schedules"][0]["changes"]] == ["catch-up", "arguments"]


async def test_the_first_occurrences_that_move_are_shown(shop: Shop) -> None:
    shop.declares("report", when="0 10 * * *")

    said = shop.applies()

    assert "occurrences of the next 30 days: 0 new, 0 gone, 30 moved, 0 as before\n" in said
    assert said.count("  moved ") == 5
    assert "09:00 UTC" in said
    assert "… and 25 more; all of them with -o json\n" in said
    assert "Nothing was written" not in said
    assert shop.applies() == "report: unchanged\n"


async def test_what_is_too_much_to_compare_is_said_to_be_at_least_so_much(shop: Shop) -> None:
    shop.declares("report", when="* * * * * *")
    shop.applies()
    shop.declares("report", when="* * * * * * ends=2100-01-01T00:00Z")

    said = shop.applies("--dry-run")

    assert "at least 0 new, at least 0 gone, at least 0 moved, at least 50,000 as before\n" in said
    assert "compared until " in said


async def test_what_live_workers_know_is_left_alone_and_that_is_said(shop: Shop, connection: Connection) -> None:
    shop.declares("other")
    await workers.register(
        connection,
        worker_id=uuid4(),
        host="h",
        pid=1,
        queues=["default"],
        handlers=["report"],
        slots=1,
        lease_seconds=60,
        version="v",
    )

    said = shop.applies("--prune")

    assert said.splitlines()[0] == "other: added"
    assert "Left alone: report. Not declared here, but live workers know the job" in " ".join(said.split())
    await connection.execute("update worker set state = 'stopped', ended_at = clock_now()")
    assert "report: no longer declared" in shop.applies()
    assert "report: deleted" in shop.applies("--prune")

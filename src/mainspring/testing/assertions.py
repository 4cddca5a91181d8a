"""Say what must have been submitted, and be told what was when it was not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mainspring.app.binding import blocking_call
from mainspring.store import jobs, runs

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from mainspring.app.job import Job

MOST_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A run of a job as it was submitted, whatever became of it since."""

    run_id: UUID
    arguments: dict[str, Any]
    queue: str
    priority: int
    tags: tuple[str, ...]
    key: str | None
    due_at: datetime

    def __str__(self) -> str:
        extras = [f"queue={self.queue}", f"priority={self.priority}"]
        extras += [f"tags={list(self.tags)}"] if self.tags else []
        extras += [f"key={self.key!r}"] if self.key else []
        return f"({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})  {'  '.join(extras)}"


async def submissions(job: Job[Any, Any]) -> list[Submission]:
    """Every run of a job, in the order of submission."""
    store = (await job.app.services()).store
    async with store.database.acquire() as connection:
        rows = await runs.of_job(connection, job.name, tenant_id=job.app.actor.tenant)
        queues = await jobs.queue_names(connection, tenant_id=job.app.actor.tenant)
    return [
        Submission(
            run_id=row["id"],
            arguments=job.handler.arguments.decode_by_name(row["payload"]),
            queue=queues.get(row["line_id"], "?"),
            priority=row["priority"],
            tags=tuple(row["tags"] or ()),
            key=row["idempotency_key"],
            due_at=row["due_at"],
        )
        for row in rows
    ]


async def assert_submitted(job: Job[Any, Any], /, *, times: int | None = None, **arguments: Any) -> list[Submission]:
    """The job was submitted with these arguments (and perhaps more of them): at least once, or exactly so many times.

    Answers with those submissions, for a closer look: `(run,) = await assert_submitted(send, to="ada")`.
    """
    everything = await submissions(job)
    matching = [each for each in everything if arguments.items() <= each.arguments.items()]
    if (times is None and not matching) or (times is not None and len(matching) != times):
        wanted = "at least once" if times is None else f"{times} times"
        raise AssertionError(
            f"{job.name} should have been submitted {wanted} with {arguments or 'any arguments'},"
            f" and was {len(matching)} times.{_listed(everything)}"
        )
    return matching


async def assert_not_submitted(job: Job[Any, Any], /, **arguments: Any) -> None:
    """The job was not submitted with these arguments."""
    await assert_submitted(job, times=0, **arguments)


submissions_sync = blocking_call("submissions_sync", submissions)
assert_submitted_sync = blocking_call("assert_submitted_sync", assert_submitted)
assert_not_submitted_sync = blocking_call("assert_not_submitted_sync", assert_not_submitted)


def _listed(everything: list[Submission]) -> str:
    if not everything:
        return " It was never submitted."
    shown = [f"  {each}" for each in everything[:MOST_SHOWN]]
    if len(everything) > MOST_SHOWN:
        shown.append(f"  … and {len(everything) - MOST_SHOWN} more")
    return " Its submissions:\n" + "\n".join(shown)

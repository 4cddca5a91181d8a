"""Submitting a job by its name: through an application that defines it, or as the database knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mainspring.app.job import Job
from mainspring.app.mainspring import who_am_i
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.job import definition_of
from mainspring.model.payload import MAX_PAYLOAD_BYTES, encode
from mainspring.store import jobs
from mainspring.worker.registry import handler_of

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.app.job import Options
    from mainspring.app.mainspring import Mainspring


async def submit_through(
    client: Mainspring, application: Mainspring, name: str, arguments: dict[str, Any], options: Options
) -> UUID:
    """Submit a job of this application; its arguments are checked against the handler's signature."""
    handler = application.registry.find(name)
    payload = handler.arguments.encode_mapping(arguments)
    client.registry.add(handler)
    return (await client.submissions.submit(Job(client, handler, options), payload)).id


async def submit_by_name(client: Mainspring, name: str, arguments: dict[str, Any], options: Options) -> UUID:
    """Submit a job that some application registered; its arguments are checked when it runs."""
    payload = encode(arguments, what="payload", limit=MAX_PAYLOAD_BYTES)
    services = await client.services()
    async with services.store.database.acquire() as connection:
        reference, document = await jobs.find(connection, name, tenant_id=DEFAULT_TENANT)
        job: Job[Any, Any] = Job(client, handler_of(definition_of(document), _elsewhere), options)
        line, _ = await jobs.line_in_known_queue(connection, job.line, tenant_id=DEFAULT_TENANT)
    numbers = services.definitions.learn(name, reference, job.line, line)
    template = job.template(reference.id, reference.version, line, who_am_i())
    return await services.submitter.submit_one(job.filled(template, payload), numbers.known)


def _elsewhere() -> None:
    """Stands for a handler that this process does not have and never calls."""

"""`mainspring run list`: runs whatever their state, newest first."""

from typing import Annotated

from cyclopts import Parameter

from mainspring.cli.command import InSession, command
from mainspring.cli.filters import Filters
from mainspring.cli.run_table import lines_of
from mainspring.cli.session import Session
from mainspring.model.filter import RunFilter


@command("list")
async def list_runs(
    *,
    filters: Filters = Filters(),  # noqa: B008  frozen
    limit: Annotated[int, Parameter(help="How many, at most 1000.")] = 20,
    cursor: Annotated[str | None, Parameter(help="Go on after the page that ended with this cursor.")] = None,
    session: InSession,
) -> None:
    """List runs, newest first.

    Newest first: by when a run ended or, if it has not, by when it was submitted.

    Examples:
      mainspring run list --job report --state dead
      mainspring run list --queue mail --since 2h --limit 20
      mainspring run list --error "connection refused" --since 1d
      mainspring run list --tag monthly --state scheduled -o json
    """
    await print_page(session, filters.wanted(), limit, cursor)


async def print_page(session: Session, wanted: RunFilter, limit: int, cursor: str | None) -> None:
    async with session.client() as client:
        page = await (await client.services()).lists.page(wanted, limit=limit, cursor=cursor)
    if session.wants_json:
        session.print_json(page)
    elif page.runs:
        session.print_lines(lines_of(page.runs, session.width))
        if page.cursor is not None:
            session.say(f"there are more: the same with --cursor {page.cursor}")
    else:
        session.print("No runs match.")

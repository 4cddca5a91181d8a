"""`mainspring dead-letter list`: runs that are out of attempts, with what killed them."""

from typing import Annotated

from cyclopts import Parameter

from mainspring.cli.command import InSession, command
from mainspring.cli.filters import DeadFilters
from mainspring.cli.run_list import print_page


@command("list")
async def list_dead(
    *,
    filters: DeadFilters = DeadFilters(),  # noqa: B008  frozen
    limit: Annotated[int, Parameter(help="How many, at most 1000.")] = 20,
    cursor: Annotated[str | None, Parameter(help="Go on after the page that ended with this cursor.")] = None,
    session: InSession,
) -> None:
    """List runs that are out of attempts.

    Examples:
      mainspring dead-letter list --job report
      mainspring dead-letter list --error "connection refused" -o json
    """
    await print_page(session, filters.wanted(), limit, cursor)

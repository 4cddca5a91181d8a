"""`mainspring grants`: print the SQL that gives a role what a worker, a client or a reader needs."""

from typing import Annotated, Literal

from cyclopts import Parameter

from mainspring.cli.command import InSession, command
from mainspring.store.grants import Kind, statements


@command("grants")
def grants(
    role: Annotated[str, Parameter(help="The name of an existing role of the database.")],
    /,
    *,
    for_: Annotated[
        Literal["worker", "client", "reader", "all"], Parameter(name="--for", help="What the role is for.")
    ] = "all",
    session: InSession,
) -> None:
    """Print the SQL that gives a role what it needs, and nothing more.

    A worker executes runs and keeps the house; a client submits runs and acts on
    them; a reader only looks. Handlers that submit runs make a worker a client
    too: that is all, the default.

    Needs no database. The role must exist; run the SQL as the role that migrates,
    or as an administrator, and again after each migrate.

    Examples:
      mainspring grants shop_worker --for worker | psql postgresql://me@db/jobs
      mainspring grants dashboard --for reader -o json
    """
    wanted = statements(role, Kind if for_ == "all" else [Kind(for_)])
    if session.wants_json:
        session.print_json(wanted)
        return
    # Not through the session: what it prints is for people, and a name must arrive as it is.
    print(
        f"-- For {'all that programs of Mainspring do' if for_ == 'all' else f'a {for_} of Mainspring'}."
        " Run it again after each `mainspring migrate`."
    )
    for statement in wanted:
        print(f"{statement};")

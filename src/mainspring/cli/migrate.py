"""`mainspring migrate`: apply what the database lacks, or say what that would be."""

from typing import Annotated, Any

from cyclopts import Parameter

from mainspring.cli.command import Flag, InSession, command
from mainspring.cli.session import Session
from mainspring.store import health
from mainspring.store.migrate import Migration, known_migrations
from mainspring.store.migrate import migrate as apply


@command("migrate")
async def migrate(
    *,
    dry_run: Annotated[bool, Flag, Parameter(help="Only say what would be applied.")] = False,
    session: InSession,
) -> None:
    """Bring the database to the shape this program needs.

    Any number of these may run at once, and running it again changes nothing.

    Examples:
      mainspring migrate --database-url postgresql://me@db/jobs --dry-run
      mainspring migrate --database-url postgresql://me@db/jobs
    """
    async with session.database() as (_, connection):
        before = await health.applied_migrations(connection)
        missing = [each for each in known_migrations() if each.version not in before]
        if not dry_run:
            missing = await apply(connection, say=session.say)
    _print(session, missing, already=len(before), dry_run=dry_run)


def _print(session: Session, migrations: list[Migration], *, already: int, dry_run: bool) -> None:
    if session.wants_json:
        named = [_named(each) for each in migrations]
        session.print_json({"pending" if dry_run else "applied": named, "applied_before": already})
        return
    for each in migrations:
        session.print(f"{'would apply' if dry_run else 'applied'} {each.version:04} {each.name.replace('_', ' ')}")
    if not migrations:
        session.print(f"up to date: {already} migration{'' if already == 1 else 's'} applied before")


def _named(migration: Migration) -> dict[str, Any]:
    return {"version": migration.version, "name": migration.name}

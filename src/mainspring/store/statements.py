"""SQL statements, one per file, loaded by name at import: `load("runs/claim")`.

Files use named parameters (`:lane`); PostgreSQL counts them (`$1`). Calls name them, so neither side can slip.

Columns that many statements have in common stand in braces and are filled in from store/columns.py: `{run}`,
`{run of lease}` for `lease.id, lease.tenant_id, …`, `{run by name}` for `id => id, tenant_id => tenant_id, …`, `{run by
name of lease}` for `id => lease.id, …`, and each of them without some: `{run except attempt, due_at}`.

`/* and ready.lane = any (:lanes) */` is left out, unless some lanes cannot be reached. On a Citus cluster it keeps a
look at several lanes away from the nodes of others; on a plain server it would only be in the way of an index.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from mainspring.store.columns import FRAGMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mainspring.store.connection import Connection, Record

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_COMMENT = re.compile(r"--[^\n]*")
_IN_REACH = re.compile(r"/\* (.*?) \*/", re.DOTALL)
_COLUMNS = re.compile(r"\{([a-z_]+)(?:\s+(by\s+name))?(?:\s+of\s+([a-z_]+))?(?:\s+except\s+([a-z_,\s]+))?\}")


class Statement:
    """One SQL statement with named parameters."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.source = source
        self.parameters: tuple[str, ...] = ()
        text = _PARAMETER.sub(self._number, with_columns(_COMMENT.sub("", source))).strip()
        self.text = _IN_REACH.sub("", text)
        self.in_reach = _IN_REACH.sub(r"\1", text)

    def _number(self, match: re.Match[str]) -> str:
        name = match[1]
        if name not in self.parameters:
            self.parameters = (*self.parameters, name)
        return f"${self.parameters.index(name) + 1}"

    def arguments(self, values: dict[str, Any]) -> list[Any]:
        if len(values) != len(self.parameters):
            raise TypeError(f"{self.name} takes {self.parameters}, not {tuple(values)}")
        return [values[name] for name in self.parameters]

    async def fetch(self, connection: Connection, **values: Any) -> list[Record]:
        is_whole = self.in_reach == self.text or connection.reach.has_all
        return await connection.fetch(self.text if is_whole else self.in_reach, *self.arguments(values))

    async def fetchrow(self, connection: Connection, **values: Any) -> Record | None:
        row: Record | None = await connection.fetchrow(self.text, *self.arguments(values))
        return row

    async def fetchval(self, connection: Connection, **values: Any) -> Any:
        return await connection.fetchval(self.text, *self.arguments(values))

    async def execute(self, connection: Connection, **values: Any) -> None:
        await connection.execute(self.text, *self.arguments(values))


def with_columns(text: str) -> str:
    """The text with its columns filled in."""
    return _COLUMNS.sub(_columns, text)


def _columns(match: re.Match[str]) -> str:
    fragment, by_name, alias, left_out = match.groups()
    without = [name.strip() for name in left_out.split(",")] if left_out else []
    names = list(FRAGMENTS[fragment])
    for name in without:
        names.remove(name)  # raises if there is none: an exception that says nothing
    values = {name: f"{alias}.{name}" if alias else name for name in names}
    return ", ".join(f"{name} => {value}" if by_name else value for name, value in values.items())


def _folder() -> Any:
    return resources.files("mainspring.store").joinpath("sql")


@cache
def load(name: str) -> Statement:
    """The statement in `sql/<name>.sql`."""
    return Statement(name, _folder().joinpath(f"{name}.sql").read_text(encoding="utf-8"))


def all_statements() -> Iterator[Statement]:
    """Every statement there is, for the tests that read them all."""
    for folder in sorted(_folder().iterdir(), key=lambda entry: entry.name):
        if folder.is_dir() and folder.name not in ("functions", "migrations"):
            for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
                yield load(f"{folder.name}/{file.name.removesuffix('.sql')}")

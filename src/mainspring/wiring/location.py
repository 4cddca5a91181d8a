"""Which database: a server by its URL, or the embedded PostgreSQL in a directory; and why that one."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

from mainspring.errors import InvalidInput
from mainspring.store.embedded import DIRECTORY_VARIABLE, default_data_directory
from mainspring.store.urls import EXAMPLE, URL_VARIABLE, checked_url, without_password

REQUIRE_VARIABLE = "MAINSPRING_REQUIRE_SERVER"
NOT_SET = ("", "0", "false", "no", "off")
FORGOTTEN = f"neither a URL nor a directory was given. To use a server, set {URL_VARIABLE}={EXAMPLE}"

# Not the log of workers, which is ours to configure: this one an application sees, and can silence, as it likes.
log = logging.getLogger("mainspring")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseLocation:
    """Which database to use."""

    url: str | None = field(default=None, repr=False)  # it may hold a password
    data_directory: Path | None = None
    reason: str = field(default="", compare=False)

    @classmethod
    def chosen(cls, url: str | None = None, data_directory: Path | str | None = None) -> DatabaseLocation:
        """What was asked for, else what the environment says, else the embedded server's usual directory."""
        if url is not None:
            return cls(url=checked_url(url), reason="its URL was given")
        if data_directory is None and (named := os.environ.get(URL_VARIABLE)):
            return cls(url=checked_url(named, URL_VARIABLE), reason=f"{URL_VARIABLE} names it")
        _refuse_where_a_server_is_required()
        if data_directory is not None:
            return cls(data_directory=Path(data_directory), reason="its directory was given")
        reason = f"{DIRECTORY_VARIABLE} names it" if os.environ.get(DIRECTORY_VARIABLE) else FORGOTTEN
        return cls(data_directory=default_data_directory(), reason=reason)

    @property
    def explanation(self) -> str:
        """Which database is in use and why, in one line and without its password."""
        where = f"the embedded PostgreSQL in {self.data_directory}"
        if self.url is not None:
            where = f"the server {without_password(self.url)}"
        return f"Mainspring uses {where}, because {self.reason}."


_explained: set[DatabaseLocation] = set()


def explain_once(location: DatabaseLocation) -> None:
    """Tell whoever runs this process which database it uses: as a warning, which is seen, if nobody has named it."""
    if location in _explained:
        return
    _explained.add(location)
    log.log(logging.WARNING if location.reason == FORGOTTEN else logging.INFO, "%s", location.explanation)


def _refuse_where_a_server_is_required() -> None:
    if os.environ.get(REQUIRE_VARIABLE, "").lower() in NOT_SET:
        return
    raise InvalidInput(
        "No database URL was given, and MAINSPRING_REQUIRE_SERVER forbids the embedded PostgreSQL.",
        code="server-required",
        hint="Set MAINSPRING_DATABASE_URL=postgresql://user:password@host:5432/database,"
        " or unset MAINSPRING_REQUIRE_SERVER.",
        field=URL_VARIABLE,
    )

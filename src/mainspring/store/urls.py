"""URLs of databases: which are understood, and how one is shown to people without its password."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qs, urlsplit

from mainspring.errors import InvalidInput, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

URL_VARIABLE = "MAINSPRING_DATABASE_URL"
EXAMPLE = "postgresql://user:password@host:5432/database"
ENCODE = "In user and password, write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and a blank as %20."
MOST_PORT = 65_535

_SCHEME = re.compile(r"[\w+.-]+://")
_SECRET = re.compile(r"(password|passwd|pwd)=[^&\s]*", re.IGNORECASE)
_NO_PORT = re.compile(r":(?!\d*(?:[/?,]|$))[^/?,]*")  # after a host, and no number: it could be a password


def checked_url(url: object, field: str = "database_url") -> str:
    """The URL as our driver reads it, also if it was written for SQLAlchemy (`postgresql+asyncpg://…`)."""
    if not isinstance(url, str):
        hint = "Give its text; of a URL of SQLAlchemy: url.render_as_string(hide_password=False)."
        raise _refused(field, f"a {type(url).__name__}", "must be a string", hint)
    text = url.strip()
    scheme, _, rest = text.partition("://")
    dialect, _, driver = scheme.lower().partition("+")
    if dialect not in ("postgresql", "postgres") or not rest:
        rule = "must begin with postgresql:// (Mainspring keeps its data in PostgreSQL, and in nothing else)"
        raise _refused(field, _shown(text), rule, f"Write it like this: {EXAMPLE}")
    if driver == "asyncpg":
        rest = re.sub(r"([?&])ssl=", r"\1sslmode=", rest)  # as SQLAlchemy has it
    for rule in _broken_rules(rest):
        raise _refused(field, _shown(text), rule, ENCODE)
    return f"postgresql://{rest}"


def without_password(url: str) -> str:
    """A URL as it may be shown. Also of what is none: whatever could be a password is left out."""
    scheme = found[0] if (found := _SCHEME.match(url)) else ""
    credentials, at, place = url.removeprefix(scheme).rpartition("@")
    user, colon, _ = credentials.partition(":")
    place = place if at else _NO_PORT.sub(":***", place)
    return _SECRET.sub(r"\1=***", f"{scheme}{user}{':***' if colon else ''}{at}{place}")


def _broken_rules(rest: str) -> Iterator[str]:
    """What is wrong with that which follows the scheme. A password with a bare @, / or # ends up somewhere else."""
    if not rest.isprintable() or " " in rest:
        yield "must have no blanks and no control characters"
    if "#" in rest:
        yield "must have no # in it"
    try:
        parts = urlsplit(f"postgresql://{rest}")
        query = parse_qs(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        yield "must be a URL (its brackets or what follows the ? cannot be read)"
        return
    if parts.netloc.count("@") > 1 or ("@" in parts.path and "@" not in parts.netloc):
        yield "must have no bare @ or / in its user or password"
    if not all(_is_port(port) for port in _ports(parts, query)):
        yield f"must have a number from 1 to {MOST_PORT} as its port"


def _ports(parts: SplitResult, query: dict[str, list[str]]) -> Iterator[str]:
    for host in parts.netloc.rpartition("@")[2].split(","):
        yield host.rpartition("]")[2].partition(":")[2]  # an IPv6 address has brackets around it
    yield from query.get("port", [""])[-1].split(",")


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= MOST_PORT)


def _shown(text: str) -> str:
    return shortened(without_password(text))


def _refused(field: str, value: str, rule: str, hint: str) -> InvalidInput:
    return InvalidInput(
        f"{field} is {value}; it {rule}.", code="invalid-database-url", hint=hint, field=field, value=value, rule=rule
    )

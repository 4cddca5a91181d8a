"""URLs of databases: which are understood, and how one is shown to people without its password."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs

from mainspring.errors import InvalidInput, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

URL_VARIABLE = "MAINSPRING_DATABASE_URL"
EXAMPLE = "postgresql://user:password@host:5432/database"
ENCODE = "In user and password, write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and a blank as %20."
MOST_PORT = 65_535

SHOWN = {"user", "host", "hostaddr", "port", "dbname", "database", "sslmode", "ssl", "application_name"}

# Others are none: `ada://secret@db` may be a user and a password that begins with slashes.
_SCHEME = re.compile(r"(?:postgres(?:ql)?|mysql|mariadb|sqlite|oracle|mssql|redis|https?)(?:\+\w+)?://", re.IGNORECASE)
_HOST = r"(?:\[[\da-fA-F:.]*\]|[^:,/\[\]]*)(?::\d{0,5})?"
_PLACE = re.compile(rf"{_HOST}(?:,{_HOST})*(?:/[^:]*)?")  # any other colon could be followed by a password
_KEYWORD = re.compile(r"(pass\w*|pwd?|secret|token)\s*=.*", re.IGNORECASE | re.DOTALL)
_PASSWORD = re.compile(r"\w*pass(?:word|wd)|pwd", re.IGNORECASE)
_BRACKETS = re.compile(r"\[[\w:.%]+\](:[^\[\]]*)?|[^\[\]]*")
_PLAIN = re.compile(r"[\w.,:/%+-]*")


class UrlParts(NamedTuple):
    """A URL of PostgreSQL. Not by `urlsplit`, which knows of one host only: some versions refuse an IPv6 address among
    several.
    """

    credentials: str  # with the @ behind them
    hosts: str
    path: str  # with the / before it
    query: str

    def without_hosts(self) -> str:
        """For whoever names the host apart."""
        return f"postgresql://{self.credentials}{self.path}{self.query and '?'}{self.query}"


def split_url(url: str) -> UrlParts:
    front, _, query = url.partition("://")[2].partition("?")
    netloc, slash, path = front.partition("/")
    credentials, at, hosts = netloc.rpartition("@")
    return UrlParts(credentials + at, hosts, slash + path, query)


def without_parameter(url: str, name: str) -> str:
    """The URL without one of the parameters after its question mark: PostgreSQL would take it for a setting."""
    front, mark, query = url.partition("?")
    kept = "&".join(pair for pair in query.split("&") if pair.partition("=")[0] != name)
    return front + (mark and kept and mark) + kept


def checked_url(url: object, field: str = "database_url") -> str:
    """The URL as our driver reads it, also if it was written for SQLAlchemy (`postgresql+asyncpg://…`)."""
    if not isinstance(url, str):
        hint = "Give its text; of a URL of SQLAlchemy: url.render_as_string(hide_password=False)."
        raise _refused(field, f"a {type(url).__name__}", "must be a string", hint)
    text = url.strip()
    scheme, _, rest = text.partition("://")
    dialect, _, driver = scheme.lower().partition("+")
    if dialect not in ("postgresql", "postgres") or "://" not in text:
        rule = "must begin with postgresql:// (Mainspring keeps its data in PostgreSQL, and in nothing else)"
        raise _refused(field, _shown(text), rule, f"Write it like this: {EXAMPLE}")
    if not rest:
        rule = "must name a server or a database after postgresql://"
        raise _refused(field, _shown(text), rule, f"Write it like this: {EXAMPLE}")
    if driver == "asyncpg":
        rest = re.sub(r"([?&])ssl=", r"\1sslmode=", rest)  # as SQLAlchemy has it
    for rule in _broken_rules(rest):
        raise _refused(field, _shown(text), rule, ENCODE)
    return f"postgresql://{rest}"


def without_password(url: str) -> str:
    """A URL as it may be shown. Also of what is none: whatever could be a part of a password is left out."""
    scheme = found[0] if (found := _SCHEME.match(url)) else ""
    front, mark, query = url.removeprefix(scheme).partition("?")
    if _KEYWORD.search(front):  # as in `host=db password='se cret'`: where a value ends is anybody's guess
        return scheme + _shown_front(_KEYWORD.sub(r"\1=***", front))
    if "@" in query:  # of a bare ? in the password before it, or of a bare @ in the query
        return f"{scheme}{re.split('[:/@]', front)[0]}:***"
    return f"{scheme}{_shown_front(front)}{mark}{'&'.join(map(_shown_pair, query.split('&') if mark else ()))}"


def _shown_front(front: str) -> str:
    """Of user, password, hosts and path all but the password."""
    credentials, at, place = front.rpartition("@")
    user, colon, _ = credentials.partition(":")
    if not at and not _PLACE.fullmatch(place):
        place = f"{place.partition(':')[0]}:***"
    return f"{user}{':***' if colon else ''}{at}{place}"


def _shown_pair(pair: str) -> str:
    """Of a query's `name=value` what is known to be no secret. Names, too, may be written in many ways."""
    name, _, value = pair.partition("=")
    if name in SHOWN and _PLAIN.fullmatch(value):
        return pair
    return f"{name}=***" if name in SHOWN or _PASSWORD.fullmatch(name) else "***"


def _broken_rules(rest: str) -> Iterator[str]:
    """What is wrong with that which follows the scheme. A password with a bare @, / or # ends up somewhere else."""
    if not rest.isprintable() or " " in rest:
        yield "must have no blanks and no control characters"
    if "#" in rest:
        yield "must have no # in it"
    try:
        parts = split_url(f"postgresql://{rest}")
        query = parse_qs(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        yield "must be a URL (what follows the ? cannot be read)"
        return
    if not all(map(_BRACKETS.fullmatch, [parts.credentials, *parts.hosts.split(",")])):
        yield "must have brackets around IPv6 addresses, and nowhere else"
    if parts.credentials.count("@") > 1 or ("@" in parts.path and not parts.credentials):
        yield "must have no bare @ or / in its user or password"
    if query.get("load_balance_hosts", ["random"]) not in (["random"], ["disable"]):
        yield "must have random or disable as its load_balance_hosts"
    if not all(_is_port(port) for port in _ports(parts, query)):
        yield f"must have a number from 1 to {MOST_PORT} as its port"


def _ports(parts: UrlParts, query: dict[str, list[str]]) -> Iterator[str]:
    for host in parts.hosts.split(","):
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

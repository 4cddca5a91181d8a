"""What a command is made of: a function with its options and its docstring, and the invocation it serves."""

from __future__ import annotations

import inspect
import sys
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import App, Group, Parameter

from mainspring.cli.text import as_json, safe
from mainspring.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import datetime

    from rich.console import RenderableType
    from rich.text import Text

    from mainspring.app.mainspring import Mainspring
    from mainspring.clock import Clock
    from mainspring.store.connection import Connection
    from mainspring.wiring import DatabaseLocation, Store


@Parameter(parse=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One call of the program: which database and tenant are meant, and how answers are to be printed."""

    database_url: str | None
    data_directory: str | None
    tenant: str | None = None
    output: Literal["table", "json", "ics"]
    _explained: list[DatabaseLocation] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if self.database_url is not None and self.data_directory is not None:
            raise InvalidInput(
                "Both --database-url and --data-dir were given; there is one database.",
                code="url-and-data-dir",
                hint="Give the URL for a server, the directory for the embedded PostgreSQL.",
                field="database_url",
            )

    @property
    def clock(self) -> Clock:
        from mainspring.clock import SystemClock

        return SystemClock()

    @property
    def now(self) -> datetime:
        from mainspring.clock import instant

        return instant(self.clock)

    # ── the database ────────────────────────────────────────────────────────────────────────────────────────

    def location(self, application: Mainspring | None = None) -> DatabaseLocation:
        """What was asked for here, else what the application says, else what the environment says."""
        from mainspring.wiring import DatabaseLocation

        if application is not None and self.tenant is not None:
            self._check_tenant(application, self.tenant)
        if application is not None and self.database_url is None and self.data_directory is None:
            location = application.location
        else:
            location = DatabaseLocation.chosen(self.database_url, self.data_directory)
        self._explain_once(location)
        return location

    def _check_tenant(self, application: Mainspring, tenant: str) -> None:
        if application.tenant != tenant:
            raise InvalidInput(
                f"--tenant says {tenant!r}, and the application's code says {application.tenant!r}.",
                code="tenant-of-application",
                hint="Leave out --tenant, or leave the tenant out of the code.",
                field="tenant",
                value=tenant,
            )

    def _explain_once(self, location: DatabaseLocation) -> None:
        """Where a URL was forgotten, people would otherwise notice it by what is missing.

        Beside a running `up` nothing is said: the server that it started is the one that is meant.
        """
        from mainspring.store.embedded.postmaster import ready_postmaster
        from mainspring.wiring.location import FORGOTTEN

        if location in self._explained or location.reason != FORGOTTEN or location.data_directory is None:
            return
        self._explained.append(location)
        if ready_postmaster(location.data_directory / "postgresql") is not None:
            return
        if not self.wants_json:
            self.say(location.explanation)
            return
        import structlog

        structlog.get_logger().warning(location.explanation)

    @asynccontextmanager
    async def client(
        self, application: Mainspring | None = None, *, tenant: str | None = None
    ) -> AsyncIterator[Mainspring]:
        """A Mainspring on the chosen database, for as long as one command takes."""
        from mainspring.app.mainspring import Mainspring, who_am_i

        location = self.location(application)
        registry = None if application is None else application.registry
        async with Mainspring(
            location.url,
            data_directory=location.data_directory,
            submitted_by=who_am_i(),
            registry=registry,
            tenant=tenant or (self.tenant if application is None else application.tenant),
        ) as client:
            yield client

    @asynccontextmanager
    async def database(self) -> AsyncIterator[tuple[Store, Connection]]:
        """A connection to the chosen database, whatever is or is not in it yet."""
        from mainspring.wiring import open_database

        store = await open_database(self.location(), self.say)
        try:
            connection = await store.database.connect("command line")
            try:
                yield store, connection
            finally:
                await connection.close()
        finally:
            await store.close()

    # ── the terminal ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def wants_json(self) -> bool:
        return self.output == "json"

    @property
    def room(self) -> int | None:
        """How long a line may be. Into a file or a pipe, any: nothing is cut for a terminal that is not there."""
        import shutil

        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

    @property
    def width(self) -> int:
        """How wide to draw what fills the terminal."""
        return self.room or 200

    def print_json(self, document: Any) -> None:
        print(as_json(document))

    def print(self, *things: RenderableType) -> None:
        """Print for people. Strings are printed as they are: escaping is the caller's, markup is nobody's."""
        from rich.console import Console

        is_terminal = sys.stdout.isatty()
        # Width and height: with one of them only, rich takes 80 columns where TERM=dumb.
        console = Console(markup=False, highlight=False, emoji=False, width=self.width, height=25)
        with console.capture() as capture:
            for thing in things:
                console.print(thing, soft_wrap=isinstance(thing, str))
        for line in capture.get().splitlines():
            print(line if is_terminal else line.rstrip())

    def print_lines(self, lines: list[Text]) -> None:
        """Print lines of which each stays one: cut where the terminal ends, and whole where there is none."""
        if not sys.stdout.isatty():
            self.print(*(line.plain for line in lines))
            return
        for line in lines:
            line.truncate(self.width, overflow="ellipsis")
        self.print(*lines)

    def say(self, sentence: str) -> None:
        """Progress, for people who watch."""
        if self.wants_json:
            return
        dim, plain = ("\033[2m", "\033[0m") if sys.stderr.isatty() else ("", "")
        with suppress(BrokenPipeError):  # nobody watches any more, and that is no reason to stop
            sys.stderr.write(f"{dim}• {safe(sentence)}{plain}\n")
            sys.stderr.flush()


Repeatable = Parameter(negative="", consume_multiple=False, show_default=False)
Flag = Parameter(negative="", show_default=False)


def command(name: str) -> Callable[[Callable[..., Any]], App]:
    """Make a command of a function. What its docstring says after the first sentence stands below its help."""

    def made(function: Callable[..., Any]) -> App:
        summary, _, notes = (inspect.getdoc(function) or "").partition("\n\n")
        app = App(name=name, help=summary, help_epilogue=notes, group_parameters=Group("Options", sort_key=1))
        app.default(function)
        return app

    return made

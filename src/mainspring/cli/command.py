"""What a command is made of: a function with its options, the session it runs in, and notes under its help."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Group, Parameter

from mainspring.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

InSession = Annotated[Session, Parameter(parse=False)]

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

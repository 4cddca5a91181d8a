"""What a command is made of: its options, the session it runs in, and notes with examples under its help."""

from typing import Annotated

from cyclopts import App, Group, Parameter

from mainspring.cli.session import Session

InSession = Annotated[Session, Parameter(parse=False)]

Repeatable = Parameter(negative="", consume_multiple=False, show_default=False)
Flag = Parameter(negative="", show_default=False)


def command(name: str, notes: str) -> App:
    """An empty command; its function is registered with `.default`."""
    return App(name=name, help_epilogue=notes, group_parameters=Group("Options", sort_key=1))

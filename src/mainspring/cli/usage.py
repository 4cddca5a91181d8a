"""Command lines that the parser would accept, and that cannot be meant: refused with exit code 2, as its errors are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, get_args

from mainspring.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyclopts import App, ArgumentCollection

_WHOLE = re.compile(r"[+-]?[0-9]+")


USAGE = "usage"  # the code of all that is wrong with a command line itself


def check_whole_numbers(_app: App, path: Sequence[str], arguments: ArgumentCollection) -> None:
    """Refuse what is no whole number wherever one is expected: cyclopts would round `1.5`, and read `0x10` and `1_000`.

    Called for every command, between reading its words and converting them.
    """
    for argument in arguments:
        if int not in (argument.hint, *get_args(argument.hint)):
            continue
        for token in argument.tokens:
            if not _WHOLE.fullmatch(token.value):
                raise _not_whole(token.keyword or argument.name, token.value, path)


def _not_whole(name: str, value: str, path: Sequence[str]) -> InvalidInput:
    from mainspring.model.payload import quoted

    rule = "must be a whole number, in digits"
    return InvalidInput(
        f"{name} is {quoted(value)}; it {rule}.",
        code=USAGE,
        hint=f"See: {' '.join(('mainspring', *path))} --help",
        field=name.lstrip("-"),
        value=quoted(value),
        rule=rule,
    )

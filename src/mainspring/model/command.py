"""Commands as jobs: a program and its arguments, some of which a run fills in. There is no shell anywhere.

`{name}` stands for an argument of the run: its text goes into that place of that one argument, whatever it contains.
`{{` and `}}` are braces.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter
from typing import Annotated, Any

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model.invalid import invalid

MAX_ARGUMENTS = 1_000
MAX_ARGUMENT_LENGTH = 32_768
MAX_FILLED_LENGTH = 8_192

_PLACEHOLDER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")

# What a run may fill in. At the beginning of an argument it must not look like an option.
_Anywhere = Annotated[str, msgspec.Meta(max_length=MAX_FILLED_LENGTH)] | int
_AtBeginning = (
    Annotated[str, msgspec.Meta(max_length=MAX_FILLED_LENGTH, pattern="^(?!-)")] | Annotated[int, msgspec.Meta(ge=0)]
)

Pieces = tuple[tuple[str, str | None], ...]  # text, and the placeholder after it


@dataclass(frozen=True, slots=True)
class Command:
    """What to start. `env` is added to the worker's environment; `cwd` is where, if not where the worker is."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    pieces: tuple[Pieces, ...] = ()

    @classmethod
    def checked(cls, argv: object, env: object = None, cwd: object = None) -> Command:
        words = _checked_argv(argv)
        return cls(words, _checked_env(env), _checked_cwd(cwd), tuple(_pieces(word) for word in words))

    @property
    def program(self) -> str:
        return "".join(text for text, _ in self.pieces[0])

    def signature(self) -> inspect.Signature:
        """The arguments of a run: one for each placeholder, by name."""
        parameters = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)
            for name, kind in self._kinds().items()
        ]
        return inspect.Signature(parameters)

    def _kinds(self) -> dict[str, Any]:
        kinds: dict[str, Any] = {}
        options_may_follow = True
        for pieces in self.pieces:
            for number, (text, name) in enumerate(pieces):
                if name is not None:
                    is_beginning = options_may_follow and number == 0 and not text
                    kinds[name] = _AtBeginning if is_beginning else kinds.get(name, _Anywhere)
            options_may_follow = options_may_follow and pieces != (("--", None),)
        return kinds

    def filled(self, arguments: Mapping[str, str | int]) -> list[str]:
        """The program and its arguments as they are started."""
        return [
            "".join(text + ("" if name is None else str(arguments[name])) for text, name in pieces)
            for pieces in self.pieces
        ]


def _checked_argv(argv: object) -> tuple[str, ...]:
    if isinstance(argv, (str, bytes)) or not isinstance(argv, Sequence):
        raise invalid("argv", argv, 'must be a list like ["ls", "-l", "{path}"]; there is no shell to split it')
    if not 0 < len(argv) <= MAX_ARGUMENTS:
        raise invalid("argv", argv, f"must have 1 to {MAX_ARGUMENTS:,} parts, the program first")
    for word in argv:
        if not isinstance(word, str) or len(word) > MAX_ARGUMENT_LENGTH or not _is_plain(word):
            raise invalid("argv", word, f"must be of strings of at most {MAX_ARGUMENT_LENGTH:,} plain characters")
    if not argv[0] or any(name is not None for _, name in _pieces(argv[0])):
        raise invalid("argv", argv[0], "must begin with the program itself: a run chooses arguments, not programs")
    return tuple(argv)


def _pieces(word: str) -> Pieces:
    try:
        parsed = list(Formatter().parse(word))
    except ValueError as error:
        raise invalid("argv", word, f"must have its braces in pairs ({error}); write {{{{ for a brace") from error
    for _, name, form, conversion in parsed:
        if name is not None and (form or conversion or not _PLACEHOLDER.fullmatch(name)):
            raise invalid("argv", word, "must have plain names in braces, like {path}; write {{ for a brace")
    return tuple((text, name) for text, name, _, _ in parsed) or (("", None),)


def _checked_env(env: object) -> dict[str, str]:
    if env is None:
        return {}
    if not isinstance(env, Mapping):
        raise invalid("env", env, "must be a dict of strings")
    for name, value in env.items():
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            raise invalid("env", name, "must have names of letters, digits and _")
        if not isinstance(value, str) or len(value) > MAX_ARGUMENT_LENGTH or not _is_plain(value):
            raise InvalidInput(  # without the value: it may be a secret
                f"env[{name!r}] must be a string of at most {MAX_ARGUMENT_LENGTH:,} plain characters.",
                code="invalid-env",
                field=f"env.{name}",
            )
    return dict(env)


def _checked_cwd(cwd: object) -> str | None:
    if cwd is None:
        return None
    text = str(cwd) if isinstance(cwd, (str, Path)) else ""
    if not 0 < len(text) <= 4_096 or not _is_plain(text):
        raise invalid("cwd", cwd, "must be the path of a folder")
    return text


def _is_plain(text: str) -> bool:
    """Whether the kernel can take it: no NUL, no lone surrogates."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False

"""The program `mainspring`: every way it can end, and what is printed then."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from mainspring.cli.interrupt import EXIT_INTERRUPTED, leave_at_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyclopts import CycloptsError

    from mainspring.errors import MainspringError

EXIT_DONE, EXIT_FAILED, EXIT_USAGE = 0, 1, 2


def main() -> None:
    leave_at_once()  # before anything else is imported
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; answers with the exit code."""
    try:
        code = _print_version() if list(arguments) == ["--version"] else _launch(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    return code


def _print_version() -> int:
    """Scripts ask this a lot, and it needs nothing of what commands need."""
    from importlib.metadata import version

    print(version("mainspring"))
    return EXIT_DONE


def _launch(arguments: Sequence[str]) -> int:
    from mainspring.errors import MainspringError, extra_missing

    try:
        from cyclopts import CycloptsError

        from mainspring.cli.commands import launch
        from mainspring.cli.usage import USAGE
    except ModuleNotFoundError as error:
        complain(extra_missing("The command line", error.name, "cli"), arguments)
        return EXIT_FAILED

    try:
        return launch(arguments)
    except CycloptsError as error:
        complain_of_usage(error, arguments)
        return EXIT_USAGE
    except MainspringError as error:
        complain(error, arguments)
        return EXIT_USAGE if error.code == USAGE else EXIT_FAILED


# ── errors, for people and for programs: on stderr, because stdout is for results only ─────────────────────────


def complain(error: MainspringError, arguments: Sequence[str]) -> None:
    """One line of JSON if JSON was asked for, so that it can be told apart from log lines; else words."""
    _complain(error.code, error.message, error.hint, error.fields, arguments)


def complain_of_usage(error: CycloptsError, arguments: Sequence[str]) -> None:
    from mainspring.cli.usage import USAGE

    path = " ".join(("mainspring", *(error.command_chain or ())))
    _complain(USAGE, _in_our_words(error), f"See: {path} --help", {}, arguments)


def _in_our_words(error: CycloptsError) -> str:
    """What the parser says; in our words where it speaks of its own ways."""
    from cyclopts.exceptions import MissingArgumentError, UnusedCliTokensError

    surplus = ", ".join(repr(word) for word in error.unused_tokens or ())
    if isinstance(error, UnusedCliTokensError):
        assigned = next((word for word in error.unused_tokens or () if "=" in word and not word.startswith("-")), None)
        suggestion = f" Did you mean --arg {assigned}?" if assigned and "submit" in (error.command_chain or ()) else ""
        return f"There is no place for {surplus} here.{suggestion}"
    if isinstance(error, MissingArgumentError) and error.argument is not None and error.keyword is None:
        return f"{error.argument.name} is missing" + (f", and there is no place for {surplus}." if surplus else ".")
    return str(error)


def _complain(code: str, message: str, hint: str | None, fields: dict[str, Any], arguments: Sequence[str]) -> None:
    from mainspring.cli.text import as_json, safe, safe_lines

    if wants_json(arguments):
        document = {"error": {"code": code, "message": message, "hint": hint, "fields": fields}}
        sys.stderr.write(as_json(document, indent=0) + "\n")
        return
    red, dim, plain = ("\033[1;31m", "\033[2m", "\033[0m") if sys.stderr.isatty() else ("", "", "")
    sys.stderr.write(f"{red}error:{plain} {safe_lines(message)} {dim}[{safe(code)}]{plain}\n")
    if "pointer" in fields:  # the line that was typed, and a caret below the character that is wrong
        shown, caret = str(fields["pointer"]).split("\n")
        sys.stderr.write(f"  {safe(shown)}\n  {red}{safe(caret)}{plain}\n")
    if hint:
        sys.stderr.write(f"{dim}hint:{plain} {safe_lines(hint)}\n")


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether JSON was asked for, read without a parser: the command line may be the very thing that is wrong."""
    from itertools import pairwise

    if any(word in ("--output=json", "-o=json", "-ojson") for word in arguments):
        return True
    return any(word in ("-o", "--output") and value == "json" for word, value in pairwise(arguments))


if __name__ == "__main__":
    main()

"""The program `mainspring`: every way it can end, and what is printed then."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

from mainspring.errors import MainspringError

if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; answers with the exit code."""
    if list(arguments) == ["--version"]:  # scripts ask this a lot, and it needs nothing of what follows
        print(version("mainspring"))
        return EXIT_DONE
    try:
        from mainspring.cli.commands import launch
    except ModuleNotFoundError as error:
        sys.stderr.write(f"error: The command line needs {error.name}, which is not installed.\n")
        sys.stderr.write("hint: pip install 'mainspring[server]'\n")
        return EXIT_FAILED
    return _guarded(launch, arguments)


def _guarded(launch: Launch, arguments: Sequence[str]) -> int:
    from cyclopts import CycloptsError

    from mainspring.cli.complaints import complain, complain_of_usage

    try:
        code = launch(arguments)
        sys.stdout.flush()
    except CycloptsError as error:
        complain_of_usage(error, arguments)
        return EXIT_USAGE
    except MainspringError as error:
        complain(error, arguments)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    return code


if TYPE_CHECKING:
    from collections.abc import Callable

    Launch = Callable[[Sequence[str]], int]

if __name__ == "__main__":
    main()

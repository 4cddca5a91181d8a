"""Finds an application by the path a person gave: `module:attribute`."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from mainspring.app.mainspring import Mainspring
from mainspring.errors import InvalidInput, MainspringError, did_you_mean

if TYPE_CHECKING:
    from types import ModuleType


def load_app(path: str) -> Mainspring:
    """The Mainspring instance that `path` names; the current directory is searched first."""
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute:
        raise _not_found(path, "it does not have the form module:attribute", "For example: --app shop.jobs:app")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    module = _imported(path, module_name)
    app = getattr(module, attribute, None)
    if app is None:
        names = [name for name, value in vars(module).items() if isinstance(value, Mainspring)]
        raise _not_found(path, f"{module_name} has no attribute {attribute!r}", did_you_mean(attribute, names))
    if not isinstance(app, Mainspring):
        raise _not_found(path, f"{attribute!r} is a {type(app).__name__}, not a Mainspring", "")
    return app


def _imported(path: str, module_name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except MainspringError:
        raise  # a job that breaks a rule: it says so best itself
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            raise _not_found(path, f"there is no module {error.name!r}", "Run from the folder it is in.") from error
        # A line instead of a traceback, most of which would be about how we came to import it.
        raise InvalidInput(
            f"The application {path!r} cannot be loaded: {_story_of(error)}.",
            code="app-broken",
            hint=f"To see how it comes to that: python -c 'import {module_name}'",
            field="app",
        ) from error


def _story_of(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    file, line = (error.filename, error.lineno) if isinstance(error, SyntaxError) else (frame.filename, frame.lineno)
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__} in {file}, line {line}: {said}".rstrip(".: ")


def _not_found(path: str, why: str, hint: str) -> InvalidInput:
    return InvalidInput(
        f"The application {path!r} cannot be loaded: {why}.", code="app-not-found", hint=hint or None, field="app"
    )

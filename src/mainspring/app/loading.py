"""Finds an application by the path a person gave: `module:attribute`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from mainspring.app.mainspring import Mainspring
from mainspring.errors import InvalidInput, did_you_mean


def load_app(path: str) -> Mainspring:
    """The Mainspring instance that `path` names; the current directory is searched first."""
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute:
        raise _not_found(path, "it does not have the form module:attribute", "For example: --app shop.jobs:app")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the application itself lacks something: its own traceback says it best
        raise _not_found(path, f"there is no module {error.name!r}", "Run from the folder it is in.") from error
    app = getattr(module, attribute, None)
    if app is None:
        names = [name for name, value in vars(module).items() if isinstance(value, Mainspring)]
        raise _not_found(path, f"{module_name} has no attribute {attribute!r}", did_you_mean(attribute, names))
    if not isinstance(app, Mainspring):
        raise _not_found(path, f"{attribute!r} is a {type(app).__name__}, not a Mainspring", "")
    return app


def _not_found(path: str, why: str, hint: str) -> InvalidInput:
    return InvalidInput(
        f"The application {path!r} cannot be loaded: {why}.", code="app-not-found", hint=hint or None, field="app"
    )

"""Makes handlers that submit runs use the database that their workers use."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mainspring.wiring import URL_VARIABLE

if TYPE_CHECKING:
    from mainspring.wiring import Place

DIRECTORY_VARIABLE = "MAINSPRING_DATA_DIR"


def bind_environment(place: Place) -> None:
    """An application that names no database asks the environment, in our children too."""
    if place.url is not None:
        os.environ[URL_VARIABLE] = place.url
        return
    os.environ.pop(URL_VARIABLE, None)
    os.environ[DIRECTORY_VARIABLE] = str(place.data_directory)

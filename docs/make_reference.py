"""Writes docs/reference from the code: commands, Python names, errors, settings.

.venv/bin/python docs/make_reference.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from generators import commands, errors, python, settings

FOLDER = Path(__file__).parent / "reference"
MADE = "<!-- Made from the code by docs/make_reference.py: change the code, then run it. -->\n\n"


PAGES = {
    "cli.md": commands.page,
    "errors.md": errors.page,
    "python.md": python.page,
    "settings.md": settings.page,
}


def made(name: str) -> str:
    """A page of the reference, as it should be."""
    return MADE + PAGES[name]().rstrip("\n") + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in PAGES:
        (FOLDER / name).write_text(made(name), encoding="utf-8")
    sys.stdout.write(f"wrote {', '.join(PAGES)} in {FOLDER.name}\n")

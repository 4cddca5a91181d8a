"""Writes docs/reference from the code: commands, Python names, errors, settings.

.venv/bin/python docs/make_reference.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from generators import commands, errors, python, settings

FOLDER = Path(__file__).parent / "reference"
MADE = "<!-- Made from the code by docs/make_reference.py: change the code, then run it. -->\n\n"


def pages() -> dict[str, str]:
    """Every page of the reference, by name, as it should be."""
    made = {
        "cli.md": commands.page(),
        "errors.md": errors.page(),
        "python.md": python.page(),
        "settings.md": settings.page(),
    }
    return {name: MADE + text.rstrip("\n") + "\n" for name, text in made.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    sys.stdout.write(f"wrote {', '.join(pages())} in {FOLDER.name}\n")

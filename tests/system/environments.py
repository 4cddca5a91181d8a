"""A fresh environment with our wheel and the packages that it declares, linked from where the tests have them.

As `pip install` would make it, and without an index: nothing is in it that the metadata does not ask for.
"""

from __future__ import annotations

import os
import re
import subprocess
import venv
import zipfile
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"[\w.-]+")
EXTRA = re.compile(r"""extra == ['"]([\w-]+)['"]""")


@dataclass(frozen=True)
class Environment:
    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, *arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, *arguments], cwd=cwd, env=surroundings() | variables, capture_output=True, text=True
        )


def surroundings() -> dict[str, str]:
    """Ours, without what would lead an interpreter back to our own packages."""
    ours = ("PYTHONPATH", "VIRTUAL_ENV", "MAINSPRING_DATABASE_URL", "MAINSPRING_DATA_DIR")
    return {name: value for name, value in os.environ.items() if name not in ours}


def built_wheel(folder: Path) -> Path:
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(built)


def installed(wheel: Path, folder: Path, *extras: str) -> Environment:
    """What `pip install "mainspring[EXTRAS]"` would give."""
    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    required = re.findall(r"^Requires-Dist: (.*)$", (packages / metadata).read_text(encoding="utf-8"), re.MULTILINE)
    for name in _closure(_chosen(required, set(extras))):
        _link(name, packages)
    return Environment(folder)


def _chosen(required: list[str], extras: set[str]) -> set[str]:
    """Names of packages that are required without an extra, or by one of these."""
    chosen: set[str] = set()
    for line in required:
        extra = EXTRA.search(line)
        if (extra is None or extra[1] in extras) and not _is_elsewhere(line):
            chosen.add(NAME.match(line)[0])  # type: ignore[index]
    return chosen


def _is_elsewhere(line: str) -> bool:
    """Whether a package that some platform or version of Python needs is not needed here: then we do not have it."""
    try:
        distribution(NAME.match(line)[0])  # type: ignore[index]
    except ModuleNotFoundError:
        return ";" in line
    return False


def _closure(names: set[str]) -> set[str]:
    found: set[str] = set()
    while names:
        name = names.pop()
        found.add(name)
        names |= _chosen(list(distribution(name).requires or ()), set()) - found
    return found


def _link(name: str, packages: Path) -> None:
    for file in distribution(name).files or ():
        top = file.parts[0]
        if top not in ("..", "__pycache__") and not (packages / top).exists():
            (packages / top).symlink_to(Path(str(distribution(name).locate_file(top))))

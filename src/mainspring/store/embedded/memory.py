"""How much memory we may use: the machine's, or less when a container or service says so."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")


def usable_memory() -> int:
    """Bytes; the smallest of the machine's memory and the limits of all control groups around us."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_cgroup_limits()])


def _cgroup_limits() -> Iterator[int]:
    for file in _limit_files():
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        if text.isdigit():  # "max" means no limit
            yield int(text)


def _limit_files() -> Iterator[Path]:
    """Version 2 has one tree, version 1 one for memory. A limit of any ancestor binds."""
    for controllers, path in _own_cgroups():
        if controllers == "":
            yield from _up_from(CGROUPS, path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _up_from(CGROUPS / "memory", path, "memory.limit_in_bytes")


def _own_cgroups() -> Iterator[tuple[str, PurePosixPath]]:
    try:
        lines = OWN_CGROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        yield controllers, PurePosixPath(path.lstrip("/"))


def _up_from(tree: Path, path: PurePosixPath, name: str) -> Iterator[Path]:
    for folder in (path, *path.parents):
        yield tree / folder / name

"""How much memory and processor time an isolated run may use: what people write, as numbers."""

from __future__ import annotations

import re
from datetime import timedelta

from mainspring.model.invalid import invalid

UNITS = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
}
LEAST_MEMORY, MOST_MEMORY = 2**20, 2**44
LEAST_CPU, MOST_CPU = timedelta(seconds=1), timedelta(days=30)

_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?) ?([A-Za-z]{1,3})", re.ASCII)


def checked_memory(memory: object) -> int | None:
    """Bytes, from a whole number or a text like "256MiB"."""
    if memory is None:
        return None
    size = _parsed(memory) if isinstance(memory, str) else memory
    if not isinstance(size, int) or isinstance(size, bool):
        raise invalid("memory", memory, 'must be a size like "256MiB" or a number of bytes')
    if not LEAST_MEMORY <= size <= MOST_MEMORY:
        raise invalid("memory", memory, "must be from 1 MiB to 16384 GiB")
    return size


def _parsed(text: str) -> int | None:
    match = _SIZE.fullmatch(text)
    unit = UNITS.get(match[2].upper()) if match else None
    return None if match is None or unit is None else int(float(match[1]) * unit)


def checked_cpu(cpu: object) -> timedelta | None:
    """Processor time. The kernel counts it in whole seconds."""
    if cpu is None:
        return None
    if not isinstance(cpu, timedelta) or not LEAST_CPU <= cpu <= MOST_CPU:
        raise invalid("cpu", cpu, "must be a timedelta, 1 second to 30 days")
    return cpu


def readable_size(size: int) -> str:
    """A number of bytes as people say it: 256 MiB."""
    for unit in ("GiB", "MiB", "KiB"):
        if size >= UNITS[unit.upper()]:
            return f"{size / UNITS[unit.upper()]:.4g} {unit}"
    return f"{size} B"

"""What the kernel has to say about processes: families, signals, limits. On Linux all of it works.

Elsewhere there is neither /proc nor prctl: then a child's process group is killed but descendants that left it are
not found, and a child outlives a zygote that was killed. `shortcomings` says so in words.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import threading
from math import ceil
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_OOM_SCORE = b"500"  # of 1000: when memory runs out, the kernel rather takes an isolated child than its worker

IS_LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None, use_errno=True) if IS_LINUX else None
_HAS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()


def shortcomings() -> list[str]:
    """What this system cannot do for isolated runs."""
    missing = []
    if not _HAS_CHILDREN:
        missing.append("descendants of isolated runs that leave their process group cannot be found and killed")
    if not IS_LINUX:
        missing.append("isolated children survive a zygote that is killed, and memory limits may not be kept")
    return missing


def _prctl(option: int, value: int) -> None:
    if _libc is not None:
        _libc.prctl(option, value, 0, 0, 0)


def die_with_parent(number: signal.Signals) -> None:
    """Ask the kernel to send this signal when our parent ends."""
    _prctl(_PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Descendants whose parent ends become our children, instead of those of process 1."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def volunteer_for_the_oom_killer() -> None:
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    except OSError:
        return
    with contextlib.suppress(OSError):
        os.write(fd, _OOM_SCORE)
    os.close(fd)


def count_threads() -> int:
    """All of them, also those that Python knows nothing of."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


# ── limits ──────────────────────────────────────────────────────────────────────────────────────────────────────


def limit_memory(size: int, *, beyond_present: bool) -> None:
    """Allow this much address space, counted from nothing or from what is in use now."""
    present = _address_space() if beyond_present else 0
    _lower(resource.RLIMIT_AS, present + size, present + size)


def limit_cpu(seconds: float) -> None:
    """SIGXCPU at the limit; SIGKILL a second later for those who would not hear."""
    whole = ceil(seconds)
    _lower(resource.RLIMIT_CPU, whole, whole + 1)


def leave_no_core() -> None:
    """A crash is told by its signal; a dump of the whole application would only fill the disk."""
    _lower(resource.RLIMIT_CORE, 0, 0)


def _lower(which: int, soft: int, hard: int) -> None:
    """Never above what was allowed before."""
    _, most = resource.getrlimit(which)
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(which, (soft, hard))


def _address_space() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


# ── families ────────────────────────────────────────────────────────────────────────────────────────────────────


def children_of(pid: int) -> list[int]:
    """The living and the unreaped; of all its threads."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found


def send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def send_to_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def kill_family(pid: int) -> None:
    """Kill a process with all its descendants.

    They are stopped first, from the top: what is stopped starts nothing more, so a look that finds nobody new has
    found everybody. Whoever slips through (a fork under way on another processor) is orphaned by the end of the
    others, adopted by the zygote, and comes here again by itself.
    """
    family: set[int] = set()
    fresh = {pid}
    while fresh:
        for each in fresh:
            send(each, signal.SIGSTOP)
        family |= fresh
        fresh = {child for each in family for child in children_of(each)} - family
    send_to_group(pid, signal.SIGKILL)  # all that is left where there is no /proc
    for each in family:
        send(each, signal.SIGKILL)

"""Which attempt the present code belongs to: said by a context variable.

Each handler runs in a context of its own, and so do the tasks it makes, the thread it runs in, and the blocking calls
it makes to us. Threads that a handler starts by itself belong to nobody.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

# A worker sets it to the Work; the process of an isolated run and inline mode to objects of theirs.
CURRENT_ATTEMPT: ContextVar[Any] = ContextVar("mainspring_attempt", default=None)

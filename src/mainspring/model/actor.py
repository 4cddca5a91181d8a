"""Who asks."""

from __future__ import annotations

from typing import NamedTuple

DEFAULT_TENANT = 1  # the one that every installation begins with


class Actor(NamedTuple):
    """Who asks: a tenant, and the name the audit keeps."""

    tenant: int
    name: str

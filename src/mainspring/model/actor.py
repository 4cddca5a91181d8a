"""Who asks."""

from __future__ import annotations

from typing import NamedTuple

DEFAULT_TENANT = 1  # the one that every installation begins with
DEFAULT_TENANT_NAME = "default"
TENANT_VARIABLE = "MAINSPRING_TENANT"  # whom programs act for that are not told


class Tenant(NamedTuple):
    """Whose jobs and runs something is. Its number means something in one installation only."""

    id: int
    name: str
    installation: str = ""


class Actor(NamedTuple):
    """Who asks: a tenant, by its number and its name, and the name the audit keeps."""

    tenant: int
    name: str
    tenant_name: str = DEFAULT_TENANT_NAME

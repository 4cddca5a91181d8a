"""The one place where concrete things are constructed and tied together."""

from mainspring.wiring.processes import (
    CHILD_VARIABLE,
    ZYGOTE_MODULE,
    ZYGOTE_VARIABLE,
    ChildConfiguration,
    ZygoteConfiguration,
    isolation,
    supervise,
    supervisor,
)
from mainspring.wiring.services import Services, services
from mainspring.wiring.store import Place, Store, open_database, open_store
from mainspring.wiring.worker import worker_process

__all__ = [
    "CHILD_VARIABLE",
    "ZYGOTE_MODULE",
    "ZYGOTE_VARIABLE",
    "ChildConfiguration",
    "Place",
    "Services",
    "Store",
    "ZygoteConfiguration",
    "isolation",
    "open_database",
    "open_store",
    "services",
    "supervise",
    "supervisor",
    "worker_process",
]

"""The one place where concrete things are constructed and tied together."""

from mainspring.wiring.in_process import worker_in_process
from mainspring.wiring.location import DatabaseLocation, explain_once
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
from mainspring.wiring.scheduler import lane_firer, schedule_until_stopped, scheduler_in_process
from mainspring.wiring.services import Services, services
from mainspring.wiring.store import Store, open_database, open_store
from mainspring.wiring.worker import start_worker

__all__ = [
    "CHILD_VARIABLE",
    "ZYGOTE_MODULE",
    "ZYGOTE_VARIABLE",
    "ChildConfiguration",
    "DatabaseLocation",
    "Services",
    "Store",
    "ZygoteConfiguration",
    "explain_once",
    "isolation",
    "lane_firer",
    "open_database",
    "open_store",
    "schedule_until_stopped",
    "scheduler_in_process",
    "services",
    "start_worker",
    "supervise",
    "supervisor",
    "worker_in_process",
]

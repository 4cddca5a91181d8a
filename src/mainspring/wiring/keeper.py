"""A keeper and its duties."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mainspring.keeper.backlog_keeper import BacklogKeeper
from mainspring.keeper.expirer import Expirer
from mainspring.keeper.follower import Follower
from mainspring.keeper.gatekeeper import Gatekeeper
from mainspring.keeper.keeper import Keeper
from mainspring.keeper.look import Look
from mainspring.keeper.partitioner import Partitioner
from mainspring.keeper.promoter import Promoter
from mainspring.keeper.pruner import Pruner
from mainspring.keeper.releaser import Releaser
from mainspring.keeper.reranker import Reranker
from mainspring.keeper.rescuer import Rescuer
from mainspring.keeper.resolver import Resolver
from mainspring.keeper.sampler import Sampler
from mainspring.keeper.sweeper import Sweeper
from mainspring.store.link import Link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mainspring.clock import Clock
    from mainspring.keeper.keeper import Duty
    from mainspring.store.database import Database


class KeeperHints(NamedTuple):
    """Whom to tell that a run was put off, and may be due before the next look; or waits for others."""

    heard_of_later: Callable[[], None]
    heard_of_dependencies: Callable[[], None]


def keeper(database: Database, lanes: int, clock: Clock) -> tuple[Keeper, KeeperHints]:
    look = Look(lanes=lanes, clock=clock)
    gatekeeper = Gatekeeper(lanes=lanes, clock=clock, look=look)

    def hint(gates: Iterable[str]) -> None:
        gatekeeper.hint(gates)
        keeping.wake(gatekeeper)

    promoter = Promoter(lanes=lanes, clock=clock, heard_of_gates=hint)
    resolver = Resolver(lanes=lanes, clock=clock, heard_of_gates=hint, look=look)

    def hear_of_dependencies() -> None:
        look.forget()  # it may be older than what we heard of
        keeping.wake(resolver)

    duties: list[Duty] = [
        Partitioner(),
        promoter,
        gatekeeper,
        resolver,
        Follower(lanes=lanes, clock=clock, look=look),
        Releaser(lanes=lanes, clock=clock, look=look),
        Rescuer(lanes=lanes, clock=clock),
        Expirer(lanes=lanes),
        Reranker(lanes=lanes, clock=clock),
        BacklogKeeper(lanes=lanes, look=look),
        Sampler(promoter.take_promoted),
        Sweeper(lanes=lanes),
        Pruner(lanes=lanes),
    ]
    keeping = Keeper(
        link=Link(database, clock, "keeper", settings={"idle_in_transaction_session_timeout": "10s"}),
        clock=clock,
        duties=duties,
    )
    return keeping, KeeperHints(lambda: keeping.wake(promoter), hear_of_dependencies)

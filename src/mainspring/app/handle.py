"""A handle on a run: what `submit` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mainspring.app.binding import blocking, blocking_stream, run_stream, run_verb
from mainspring.control.explaining import Explanations
from mainspring.control.results import Results
from mainspring.control.runs import Runs
from mainspring.control.watching import Watching
from mainspring.model.dependency import ResultOf

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.app.mainspring import Mainspring
    from mainspring.model.actor import Actor
    from mainspring.model.backlog import BacklogNotice

R = TypeVar("R")


class Handle(Generic[R]):
    """One run, by its id. Each method has a twin for code that is not async: `handle.result_sync()`.

    `is_new` says whether this submission made the run; if not, an earlier one answers it, which has the same
    idempotency or unique key. None: the handle was not made by a submission. `backlog` is set if a backlog that the run
    waits in was nearly full when it was submitted: `handle.backlog.utilization`.
    """

    __slots__ = ("_app", "backlog", "id", "is_new")
    called = "handle"
    hint_as_argument = "For what the run will return, pass handle.output; for its id, handle.id."

    def __init__(
        self, app: Mainspring, run_id: UUID, is_new: bool | None = None, backlog: BacklogNotice | None = None
    ) -> None:
        self._app = app
        self.id = run_id
        self.is_new = is_new
        self.backlog = backlog

    @property
    def opener(self) -> Mainspring:
        return self._app

    @property
    def leading(self) -> tuple[Actor, UUID]:
        return self._app.actor, self.id

    @property
    def output(self) -> R:
        """What the handler will return, as an argument of another run: `await load.submit(rows=extracted.output)`.

        That run waits until this one has succeeded. It is no value yet: to have it here, await `result`.
        """
        return ResultOf(self.id)  # type: ignore[return-value]  # it stands for one

    async def result(self, timeout: float | None = None) -> R:
        """What the handler returned, once it has; raises RunFailed, RunCancelled, RunExpired or ResultTimeout."""
        results = (await self._app.services()).of(Results)
        value: Any = await results.result(self._app.actor, self.id, timeout)
        return value  # type: ignore[no-any-return]  # converted to what the handler's annotation says

    find = run_verb(Runs, Runs.find)
    explain = run_verb(Explanations, Explanations.explain)
    cancel = run_verb(Runs, Runs.cancel)
    change = run_verb(Runs, Runs.change)
    logs = run_verb(Watching, Watching.logs)
    watch = run_stream(Watching, Watching.watch)

    result_sync = blocking(result)
    find_sync = blocking(find)
    explain_sync = blocking(explain)
    cancel_sync = blocking(cancel)
    change_sync = blocking(change)
    logs_sync = blocking(logs)
    watch_sync = blocking_stream(watch)

    def __repr__(self) -> str:
        return f"<run {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

"""What an operation does to a batch of runs, within the transaction of that batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mainspring.control.dead import requeue_in_lane
from mainspring.control.run_changes import changed_line, checked_changes, wake_changed
from mainspring.model.actor import Actor
from mainspring.model.ids import by_lane
from mainspring.model.operation import OperationKind
from mainspring.store import dead, notify
from mainspring.store import runs as store

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.control.reruns import Reruns
    from mainspring.model.operation import Operation
    from mainspring.store.connection import Connection


class Acting:
    """Acts on runs lane by lane."""

    def __init__(self, *, reruns: Reruns) -> None:
        self._reruns = reruns

    async def act(self, connection: Connection, tenant: int, operation: Operation, lines: dict[UUID, int]) -> int:
        """Act on these runs; answers on how many. The others moved on: that is reported, and no failure."""
        act = dead.Act(tenant, operation.actor, detail_of(operation))
        done = 0
        for lane, some in by_lane(lines):
            match operation.kind:
                case OperationKind.CANCEL:
                    done += await self._cancel(connection, lane, some, operation, act)
                case OperationKind.CHANGE:
                    done += await self._change(connection, lane, {each: lines[each] for each in some}, operation, act)
                case OperationKind.REQUEUE:
                    age = operation.change.get("max_age")
                    done += len(await requeue_in_lane(connection, lane, some, act, max_age=age))
                case OperationKind.PURGE:
                    done += len(await dead.purge(connection, lane, some, act, reason=operation.reason))
                case OperationKind.RERUN:
                    done += len(await self._reruns.rerun_in_lane(connection, lane, some, act))
                case OperationKind.BACKFILL:
                    raise AssertionError("backfills are worked off by control/backfilling.py")
        return done

    async def _change(
        self, connection: Connection, lane: int, lines: dict[UUID, int], operation: Operation, act: dead.Act
    ) -> int:
        """Line by line: what a run requires of its worker goes with it into another queue."""
        done: set[UUID] = set()
        values = checked_changes(**operation.change)
        actor = Actor(act.tenant_id, act.actor)
        for line in sorted(set(lines.values())):
            changes = await changed_line(connection, actor, values, line)
            for _ in range(2):  # where they wait, and once more for those that were promoted meanwhile
                left = [run_id for run_id in lines if lines[run_id] == line and run_id not in done]
                if not left:
                    break
                rows = await store.change(
                    connection,
                    lane,
                    left,
                    changes,
                    tenant_id=act.tenant_id,
                    present_line=line,
                    actor=act.actor,
                    detail=act.detail,
                )
                await wake_changed(connection, lane, rows)
                done |= {row["id"] for row in rows}
        return len(done)

    async def _cancel(
        self, connection: Connection, lane: int, run_ids: list[UUID], operation: Operation, act: dead.Act
    ) -> int:
        """Where they wait; then in their leases; then once more where they wait, for those that went back."""
        said: dict[str, Any] = {
            "tenant_id": act.tenant_id,
            "actor": act.actor,
            "reason": operation.reason,
            "detail": act.detail,
        }
        done = set(await store.cancel_waiting(connection, lane, run_ids, **said))
        left = [run_id for run_id in run_ids if run_id not in done]
        for run_id in await store.lock_running(connection, lane, left) if left else ():
            worker = await store.request_cancel(connection, run_id, **said)
            if worker is not None:
                done.add(run_id)
                notify.send(connection, [notify.cancel(worker)])
        left = [run_id for run_id in run_ids if run_id not in done]
        if left:
            done |= set(await store.cancel_waiting(connection, lane, left, **said))
        return len(done)


def detail_of(operation: Operation) -> str:
    detail: dict[str, Any] = {"reason": operation.reason, "operation": operation.id}
    if operation.kind is OperationKind.CHANGE:
        detail["changed"] = sorted(operation.change)
    return msgspec.json.encode(detail).decode()

"""Which runs are meant: the filter of lists and of operations on many runs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  msgspec reads RunFilter's annotations
from typing import TYPE_CHECKING, Any

import msgspec

from mainspring.errors import InvalidInput, did_you_mean
from mainspring.model import job as rules
from mainspring.model.invalid import invalid
from mainspring.model.lifecycle import ENDS, Outcome, State
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_NAMES = 100
MAX_ERROR_TEXT = 500

FAILURES = (Outcome.FAILED, Outcome.CRASHED, Outcome.TIMED_OUT)
UNSUCCESSFUL = tuple(outcome for outcome in Outcome if outcome is not Outcome.SUCCEEDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are meant; what is left out matches everything. Checked when made."""

    jobs: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    states: tuple[State, ...] = ()
    tags: tuple[str, ...] = ()  # all of them
    since: datetime | None = None
    until: datetime | None = None  # exclusive
    failed: bool = False  # runs with a failed attempt, at the latest one
    error: str | None = None  # text in the error of such an attempt; letters' case does not matter

    def __post_init__(self) -> None:
        for name in ("jobs", "queues", "states"):  # a word is one of them, not a list of letters
            object.__setattr__(self, name, _several(getattr(self, name)))
        for name in self.jobs:
            rules.checked_name(name, "job")
        for name in self.queues:
            rules.checked_name(name, "queue")
        if max(len(self.jobs), len(self.queues)) > MOST_NAMES:
            raise invalid(
                "filter", f"{len(self.jobs)} jobs, {len(self.queues)} queues", f"must name at most {MOST_NAMES} of each"
            )
        object.__setattr__(self, "states", tuple(_state(each) for each in self.states))
        rules.checked_tags(self.tags)
        rules.checked_at(self.since, "since")
        rules.checked_at(self.until, "until")
        if self.since is not None and self.until is not None and self.since > self.until:
            raise invalid("since", self.since, "must not be after until")
        if self.error is not None:
            rules.checked_text(self.error, "error", MAX_ERROR_TEXT)

    @property
    def asks_for_failures(self) -> bool:
        return self.failed or self.error is not None

    @property
    def wanted_states(self) -> frozenset[State]:
        return frozenset(self.states or State)

    @property
    def ends(self) -> frozenset[State]:
        return self.wanted_states & ENDS

    @property
    def is_narrow(self) -> bool:
        """Whether only some jobs or queues are meant."""
        return bool(self.jobs or self.queues)

    @property
    def reads_history(self) -> bool:
        """Whether runs have to be looked for among finished attempts; dead ones are where they are."""
        return self.wanted_states != {State.DEAD} if self.asks_for_failures else bool(self.ends)

    def as_document(self) -> dict[str, Any]:
        """As it is stored with an operation: only what was asked for."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in document.items() if value not in (None, (), [], False)}

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(msgspec.json.encode(self.as_document(), order="sorted")).digest()[:8]


def filter_of(document: dict[str, Any]) -> RunFilter:
    return msgspec.convert(document, RunFilter)


def run_filter(
    *,
    job: str | Iterable[str] = (),
    queue: str | Iterable[str] = (),
    state: State | str | Iterable[State | str] = (),
    tags: Iterable[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    failed: bool = False,
    error: str | None = None,
) -> RunFilter:
    """A filter from what people give: one name or several."""
    return RunFilter(
        jobs=_several(job),
        queues=_several(queue),
        states=_several(state),
        tags=tuple(rules.checked_tags(tags) or ()),
        since=since,
        until=until,
        failed=failed,
        error=error,
    )


def _several(one_or_many: Any) -> tuple[Any, ...]:
    if isinstance(one_or_many, str):
        return (one_or_many,)
    return tuple(dict.fromkeys(one_or_many))


def _state(word: State | str) -> State:
    try:
        return State(word)
    except ValueError:
        raise InvalidInput(
            f"There is no state {quoted(word)}.",
            code="invalid-state",
            hint=did_you_mean(str(word), (state.value for state in State))
            if len(str(word)) < 30
            else f"Known: {', '.join(State)}.",
            field="state",
            value=quoted(word),
            rule="must be a state of the lifecycle",
        ) from None

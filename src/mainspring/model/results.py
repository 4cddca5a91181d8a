"""What a handler returns, from its annotation: checked when it returns, and given to those who ask as what it was."""

from __future__ import annotations

from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, Never, NoReturn, Union, get_args, get_origin

import msgspec

from mainspring.errors import (
    InvalidResult,
    RunCancelled,
    RunExpired,
    RunFailed,
    RunLost,
    RunNotSucceeded,
    shortened,
)
from mainspring.model.conversion import decoder_of, misfit_of, shown
from mainspring.model.lifecycle import State
from mainspring.model.line import Delivery
from mainspring.model.payload import MAX_RESULT_BYTES, decode, encode
from mainspring.model.steering import Steering

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

_ANYTHING = (Any, object, NoReturn, Never)
_ALWAYS_FIT = (str, int, bool, float, list, dict)  # what is exactly of this type comes back from JSON as this type


class ReturnType:
    """The type of a job's results. Without an annotation, or with Any, they are plain JSON values."""

    __slots__ = ("_annotation", "_decoder", "_exact", "_job", "_takes_none")

    def __init__(self, job: str, annotation: Any = Any) -> None:
        self._job = job
        self._annotation = annotation
        self._decoder: msgspec.json.Decoder[Any] | None = None
        if annotation not in _ANYTHING:
            self._decoder = decoder_of(annotation, job, "what it returns", "return")
        self._exact = annotation if annotation in _ALWAYS_FIT else None
        self._takes_none = self._decoder is None or _takes_none(self._decoder)

    def encode(self, result: Any) -> bytes | None:
        """What is kept of what a handler returned, if that is what it promised. None is kept as nothing."""
        if result is None and self._takes_none:
            return None
        data = encode(result, what="result", limit=MAX_RESULT_BYTES)
        if self._decoder is not None and type(result) is not self._exact:
            self._read(self._decoder, data, "Return what the annotation says, from middleware too; or change it.")
        return data

    def decode(self, data: bytes | None) -> Any:
        """What a handler returned, from what was kept of it."""
        if self._decoder is None or (data is None and self._takes_none):
            return None if data is None else decode(data)
        hint = "It returned something else when this run ended. As plain JSON, the run's last attempt has it."
        return self._read(self._decoder, b"null" if data is None else data, hint)

    def _read(self, decoder: msgspec.json.Decoder[Any], data: bytes, hint: str) -> Any:
        try:
            return decoder.decode(data)
        except MemoryError:
            raise
        except Exception as error:  # also what validators raise: the work is done, whatever they think of its result
            raise self._invalid(error, data, hint) from error

    def _invalid(self, error: Exception, data: bytes, hint: str) -> InvalidResult:
        path, rule = misfit_of(error)
        value = shortened(msgspec.json.decode(data))
        where = f" at {path.removeprefix('.')}" if path else ""
        return InvalidResult(
            f"{self._job}: the result does not fit {shown(self._annotation)}{where}: {rule} (it is {value}).",
            hint=hint,
            job=self._job,
            field=path.removeprefix(".") or "result",
            value=value,
            rule=rule,
        )


PLAIN = ReturnType("")


def return_type_of(job: str, hints: Mapping[str, Any], delivery: Delivery) -> ReturnType:
    """By the annotation of a handler, whose `hints` these are."""
    annotation = without_kind(hints.get("return", Any), Steering)
    if delivery is Delivery.TRANSACTIONAL and annotation is NoneType:
        annotation = Any  # its result is what it finishes its run with; it need not return it as well
    return ReturnType(job, annotation)


def without_kind(annotation: Any, unwanted: type) -> Any:
    """A handler may return what is to become of its run: `-> Order | Snooze` is an Order."""
    is_union = get_origin(annotation) in (Union, UnionType)
    kinds = get_args(annotation) if is_union else (annotation,)
    kept = tuple(kind for kind in kinds if not (isinstance(kind, type) and issubclass(kind, unwanted)))
    if len(kept) == len(kinds):
        return annotation
    return reduce(or_, kept) if kept else NoneType


def _takes_none(decoder: msgspec.json.Decoder[Any]) -> bool:
    try:
        return decoder.decode(b"null") is None
    except Exception:
        return False


_REASONS: dict[State, type[RunNotSucceeded]] = {
    State.DEAD: RunFailed,
    State.CANCELLED: RunCancelled,
    State.EXPIRED: RunExpired,
    State.LOST: RunLost,
}


class RunEnd(NamedTuple):
    """How a run ended."""

    state: State
    result: bytes | None
    error: str | None
    job: str

    def value(self, run_id: UUID, returns: ReturnType) -> Any:
        """The handler's return value, or the error that tells why there is none."""
        if self.state is State.SUCCEEDED:
            return returns.decode(self.result)
        error = {} if self.error is None else msgspec.json.decode(self.error)
        raise _REASONS[self.state](
            f"Run {run_id} is {self.state}: {self._cause(error)}",
            hint=f"See: mainspring run show {run_id}",
            run_id=str(run_id),
            state=self.state.value,
            error=error,
        )

    def _cause(self, error: dict[str, str]) -> str:
        """In the words of a traceback's last line, if something was raised: what cancels a run is no error."""
        names = ("type", "message") if self.state is State.DEAD else ("message",)
        return ": ".join(filter(None, map(error.get, names))) or self.state.value

"""Handlers that are called for a chunk of runs: what their signature says, and what they answer.

    @dataclass
    class Reading:
        sensor: int
        celsius: float

    @app.job(chunk=100, chunk_wait=timedelta(seconds=0.2))
    async def store(readings: list[Reading]) -> list[int | Exception]: …

The class of the items says what the arguments of one run are, and checks them: `store.submit(Reading(7, 21.5))`, or by
name, `store.submit(sensor=7, celsius=21.5)`. So a plain handler that takes these arguments can become one for chunks,
and the other way round, while runs are waiting.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Union, get_args, get_origin, is_typeddict

import msgspec
from msgspec import UNSET, UnsetType
from msgspec import inspect as msgspec_types

from mainspring.errors import InvalidAnswers, InvalidArguments, InvalidInput, shortened
from mainspring.model.arguments import Arguments, hints_of, readable_signature, unfit, without
from mainspring.model.context import Context
from mainspring.model.conversion import decoder_of, is_pydantic, shown
from mainspring.model.payload import MAX_PAYLOAD_BYTES, encode
from mainspring.model.resource import injected_into
from mainspring.model.results import ReturnType, without_kind
from mainspring.model.steering import Steering

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LISTS = (list, Sequence)
_WITH_FIELDS = (
    msgspec_types.DataclassType,
    msgspec_types.StructType,
    msgspec_types.NamedTupleType,
    msgspec_types.TypedDictType,
)
_ONE_FOR_EACH = "must be a list with one answer for each run, in their order"


# ── what one run is called with ─────────────────────────────────────────────────────────────────────────────────


class ChunkArguments(Arguments):
    """What a run of a chunk handler may be submitted with: the fields of an item.

    `decode` answers with the item as the only argument. `wants_context` says whether the handler takes a list of
    contexts before that of the items.
    """

    def __init__(self, job: str, function: Callable[..., Any]) -> None:
        self.job = job
        signature = readable_signature(inspect.signature(function), hints_of(job, function))
        self.injected = injected_into(job, signature)
        parameters = list(without(signature, self.injected).parameters.values())
        self.wants_context = bool(parameters) and _item_of(parameters[0].annotation) is Context
        self._item = _class_of_items(job, parameters[self.wants_context :])
        # Of pydantic's models the fields are only named here: the model itself reads them, by all its rules.
        whole = decoder_of(self._item, job, "a run", parameters[-1].name)
        self._whole = whole if is_pydantic(self._item) else None
        fields = list(_fields_of(job, self._item))
        self._has_defaults = not all(each.is_required for each in fields)
        self.described(_signature_of(fields), _struct_of(job, fields))

    def encode(self, positional: tuple[Any, ...], named: Mapping[str, Any]) -> bytes:
        """For an item, or for the arguments that one is made of, by name."""
        if len(positional) == 1 and not named:
            return self.encode_call(positional[0])
        if positional:
            raise self._not_callable(positional, named, TypeError("too many positional arguments"))
        try:
            call = self._struct(**named)
        except TypeError as error:
            raise self._not_callable(positional, named, error) from error
        payload = encode(call, what="payload", limit=MAX_PAYLOAD_BYTES, sorts=self._has_sets)
        item = self._item_from(payload)
        return self._encode_item(item) if self._has_defaults else payload

    def encode_call(self, call: Any) -> bytes:
        if isinstance(call, Mapping):
            return self.encode((), call)
        if not isinstance(call, dict if is_typeddict(self._item) else self._item):
            raise InvalidArguments(
                f"{self.job} takes a {self._item.__name__}; this is {shortened(call)}.",
                hint=f"Give it one, or its fields by name: {self._signature}.",
                job=self.job,
                value=shortened(call),
                rule=f"must be a {self._item.__name__}",
            )
        return self._encode_item(call)

    def _encode_item(self, item: Any) -> bytes:
        """With the defaults that its class has put in: they are those of the submission, not of some later attempt."""
        fields = item if isinstance(item, Mapping) else {name: getattr(item, name) for name in self.names}
        payload = encode(fields, what="payload", limit=MAX_PAYLOAD_BYTES, sorts=self._has_sets)
        self._item_from(payload)
        return payload

    def decode(self, payload: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        try:
            return (self._item_from(payload),), {}
        except InvalidArguments as error:
            raise unfit(error) from error

    def decode_by_name(self, payload: bytes) -> dict[str, Any]:
        try:
            fields = msgspec.structs.asdict(self._decoder.decode(payload))
        except msgspec.ValidationError as error:
            raise self._invalid(error, payload) from error
        if self._has_defaults:
            return {name: value for name, value in fields.items() if value is not UNSET}
        return fields

    def _item_from(self, payload: bytes) -> Any:
        fields = self.decode_by_name(payload)
        try:
            return self._item(**fields) if self._whole is None else self._whole.decode(payload)
        except msgspec.ValidationError as error:
            raise self._invalid(error, payload) from error
        except Exception as error:  # whatever a class says against its fields
            raise InvalidArguments(
                f"{self.job}: no {self._item.__name__} can be made of these arguments: {error}.",
                hint=f"It takes {self._signature}.",
                job=self.job,
                value=shortened(msgspec.json.decode(payload)),
                rule=str(error),
            ) from error


class _Field(NamedTuple):
    name: str
    kind: Any
    is_required: bool


def _item_of(annotation: Any) -> Any:
    """What a list is a list of; None if this is no list."""
    kinds = get_args(annotation)
    return kinds[0] if get_origin(annotation) in _LISTS and kinds else None


def _class_of_items(job: str, parameters: list[inspect.Parameter]) -> Any:
    if len(parameters) != 1:
        _refuse(job, f"it takes {len(parameters)} arguments, and gets one: the list of its items")
    (parameter,) = parameters
    item = _item_of(parameter.annotation)
    if item is None:
        _refuse(job, f"{parameter.name!r} is annotated {_shown(parameter)}, and gets a list", parameter)
    if not is_pydantic(item) and not isinstance(_info(item), _WITH_FIELDS):
        _refuse(job, f"{parameter.name!r} is a list of {shown(item)}, which does not name a run's arguments", parameter)
    return item


def _shown(parameter: inspect.Parameter) -> str:
    return "with nothing" if parameter.annotation is parameter.empty else shown(parameter.annotation)


def _info(item: Any) -> msgspec_types.Type | None:
    try:
        return msgspec_types.type_info(item)
    except TypeError:
        return None


def _fields_of(job: str, item: Any) -> Iterator[_Field]:
    if is_pydantic(item):
        yield from (_Field(name, Any, each.is_required()) for name, each in item.model_fields.items())
        return
    hints, info = hints_of(job, item), _info(item)
    made = {each.name for each in dataclasses.fields(item) if not each.init} if dataclasses.is_dataclass(item) else ()
    for field in info.fields:  # type: ignore[union-attr]  # `_class_of_items` has looked
        if field.name not in made:
            yield _Field(field.name, hints[field.name], field.required)


def _struct_of(job: str, fields: list[_Field]) -> type[msgspec.Struct]:
    """What is left out stays so: the class of the items knows its defaults, and may make them anew for each."""
    described: list[Any] = [
        (name, kind) if is_required else (name, Union[kind, UnsetType], UNSET)  # noqa: UP007  a value, not an annotation
        for name, kind, is_required in fields
    ]
    return msgspec.defstruct(f"{job}_arguments", described, kw_only=True, forbid_unknown_fields=True)


def _signature_of(fields: list[_Field]) -> inspect.Signature:
    empty = inspect.Parameter.empty
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=empty if kind is Any else kind,
            default=empty if is_required else ...,
        )
        for name, kind, is_required in fields
    ]
    return inspect.Signature(parameters)


def _refuse(job: str, reason: str, parameter: inspect.Parameter | None = None) -> NoReturn:
    raise InvalidInput(
        f"{job} cannot be called for a chunk of runs: {reason}.",
        code="invalid-chunk-handler",
        hint=f"Write: def {job}(items: list[Item]), where Item is a dataclass with the arguments of one run; or"
        f" def {job}(contexts: list[Context], items: list[Item]). Resources are keyword-only.",
        job=job,
        field=None if parameter is None else parameter.name,
    )


# ── what it answers ─────────────────────────────────────────────────────────────────────────────────────────────


def answer_type_of(job: str, hints: Mapping[str, Any]) -> ReturnType:
    """The type of one run's result: by what a handler, whose `hints` these are, returns a list of."""
    annotation = hints.get("return", Any)
    if annotation in (Any, None, NoneType, list):
        return ReturnType(job, Any if annotation is list else annotation)
    answer = _item_of(annotation)
    if answer is None:
        raise InvalidInput(
            f"{job} is called for a chunk of runs and returns {shown(annotation)}; it {_ONE_FOR_EACH}.",
            code="invalid-chunk-handler",
            hint="Write -> list[int], -> list[int | Exception], or -> None if runs have no results.",
            job=job,
            field="return",
            value=shown(annotation),
            rule=_ONE_FOR_EACH,
        )
    return ReturnType(job, without_kind(answer, BaseException))


def answers_of(job: str, result: Any, count: int) -> Sequence[Any]:
    """An answer for each run: a value, or an exception, which may be steering. None stands for as many of it."""
    if result is None or isinstance(result, Steering):
        return [result] * count
    if isinstance(result, (list, tuple)) and len(result) == count:
        return result
    what = f"{len(result)} answers" if isinstance(result, (list, tuple)) else shortened(result)
    raise InvalidAnswers(
        f"{job} was called for {count} {'run' if count == 1 else 'runs'} and returned {what}; it {_ONE_FOR_EACH}.",
        hint="Return a value or an exception for each run, or None if all of them succeeded and have no results.",
        job=job,
        field="return",
        value=what,
        rule=_ONE_FOR_EACH,
    )

"""Values as JSON and back, by their annotations: which types there are, and what does not fit.

msgspec knows most types: numbers, texts, dates, enums, dataclasses, attrs, structs, TypedDict, NamedTuple, and lists,
sets, tuples and dicts of them. Two hooks add paths and pydantic's models. pydantic itself is never imported: a model
brings all that is needed. What cannot come back from JSON as it went in is refused when its annotation tells, such as
fields that a model leaves out. Nobody can tell what a serializer of a model's own does, nor what is in an `Any`.
"""

from __future__ import annotations

import inspect
import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import msgspec
from msgspec import inspect as msgspec_types

from mainspring.errors import InvalidInput
from mainspring.model.pydantic_fields import REMEDIES, lossy_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

SUPPORTED = (
    "Use numbers, str, bytes, datetime, timedelta, UUID, Decimal, Enum, Path, dataclasses, attrs, msgspec structs,"
    " pydantic models, TypedDict, NamedTuple, or lists, sets, tuples and dicts of these."
)
PYDANTIC_CONSTRAINT = "constraints of pydantic count within its models only"
_AT = re.compile(r" - at `\$([^`]*)`\Z")
_KEYS = (
    msgspec_types.AnyType,
    msgspec_types.StrType,
    msgspec_types.BytesType,
    msgspec_types.IntType,
    msgspec_types.FloatType,
    msgspec_types.DecimalType,
    msgspec_types.EnumType,
    msgspec_types.LiteralType,
    msgspec_types.UUIDType,
    msgspec_types.DateTimeType,
    msgspec_types.DateType,
    msgspec_types.TimeType,
    msgspec_types.TimeDeltaType,
)

# ── what msgspec does not know ──────────────────────────────────────────────────────────────────────────────────


class NotJson(TypeError):
    """A value that no JSON stands for; with what to pass instead, if its class says that."""

    def __init__(self, value: Any) -> None:
        super().__init__(f"Encoding objects of type {type(value).__name__} is unsupported")
        self.hint: str | None = getattr(type(value), "hint_as_argument", None)


def as_json(value: Any) -> Any:
    """A value that msgspec does not know, as one that it does."""
    if isinstance(value, PurePath):
        return str(value)
    if is_pydantic(type(value)):
        # By the names of fields: aliases for reading and for writing need not be the same.
        return value.model_dump(mode="json", by_alias=False, round_trip=True)
    raise NotJson(value)


def from_json(kind: Any, value: Any) -> Any:
    """The opposite of `as_json`; ValueError if it does not fit."""
    if kind is object:  # as in dict[str, object]: anything
        return value
    if _is_path(kind):
        return kind(msgspec.convert(value, str))
    # As JSON: a strict model takes the text of a date from JSON only.
    return kind.model_validate_json(msgspec.json.encode(value), by_alias=True, by_name=True)


def _is_path(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, PurePath)


def is_pydantic(kind: Any) -> bool:
    """Whether this is a model of pydantic 2."""
    return hasattr(kind, "__pydantic_validator__") and hasattr(kind, "model_validate_json")


# ── which annotations can be kept ───────────────────────────────────────────────────────────────────────────────


def decoder_of(annotation: Any, job: str, what: str, field: str) -> msgspec.json.Decoder[Any]:
    """Reads JSON as values of this type. `what` is named in the error if there cannot be such values."""
    reason = _objection_to(annotation)
    if reason is None:
        return msgspec.json.Decoder(annotation, dec_hook=from_json)
    raise InvalidInput(
        f"{job}: {what} is annotated {shown(annotation)}, which cannot be kept as JSON: {reason}.",
        code="unsupported-type",
        hint=_remedy(reason),
        job=job,
        field=field,
        value=shown(annotation),
        rule=reason,
    )


def shown(annotation: Any) -> str:
    """An annotation as a message shows it."""
    return inspect.formatannotation(annotation)


def _remedy(reason: str) -> str:
    if reason == PYDANTIC_CONSTRAINT:
        return "Use msgspec's, as in Annotated[int, msgspec.Meta(gt=0)], or put the value into a model."
    if "unions" in reason:
        return (
            "Use one of these types, or a class of your own for each with a tag: msgspec.Struct, or a pydantic model."
        )
    return next((remedy for what, remedy in REMEDIES.items() if what in reason), SUPPORTED)


def _objection_to(annotation: Any) -> str | None:
    """Why values of a type would not come back from JSON. Much of that msgspec would say only when it meets one."""
    try:
        info = msgspec_types.type_info(annotation)
    except TypeError as error:
        return str(error).partition(" - ")[0]
    return PYDANTIC_CONSTRAINT if _is_constrained_by_pydantic(annotation) else next(_objections(info), None)


def _is_constrained_by_pydantic(annotation: Any) -> bool:
    """msgspec would pass over them without a word."""
    marks = getattr(annotation, "__metadata__", ())
    homes = {type(mark).__module__.partition(".")[0] for mark in marks}
    return bool(homes & {"pydantic", "annotated_types"}) or any(map(_is_constrained_by_pydantic, get_args(annotation)))


def _objections(info: msgspec_types.Type) -> Iterator[str]:
    for each in _within(info, set()):
        match each:
            case msgspec_types.CustomType(cls=kind) if not (kind is object or _is_path(kind) or is_pydantic(kind)):
                yield f"{shown(kind)} has no form in JSON"
            case msgspec_types.CustomType(cls=kind) if is_pydantic(kind):
                yield from lossy_fields(kind)
            case msgspec_types.DataclassType(cls=kind) if hasattr(kind, "__pydantic_validator__"):
                yield f"{shown(kind)} is a dataclass of pydantic, whose validation would be passed over: use a model"
            case msgspec_types.DictType(key_type=key) if not _is_key(key):
                yield "a key of a JSON object is one text"
            case msgspec_types.SetType(item_type=item) | msgspec_types.FrozenSetType(item_type=item):
                if getattr(getattr(item, "cls", None), "__hash__", True) is None:
                    yield f"{shown(item.cls)} is not hashable, and cannot be in a set"  # type: ignore[attr-defined]
            case _:
                pass


def has_sets(annotation: Any) -> bool:
    """Whether values of a type may contain sets: those have no order that two processes agree on."""
    sets = (msgspec_types.SetType, msgspec_types.FrozenSetType)
    return any(isinstance(each, sets) for each in _within(msgspec_types.type_info(annotation), set()))


def _is_key(info: msgspec_types.Type) -> bool:
    if isinstance(info, msgspec_types.LiteralType):
        return all(type(value) in (str, int) for value in info.values)
    return isinstance(info, _KEYS) or (isinstance(info, msgspec_types.CustomType) and _is_path(info.cls))


def _within(info: Any, seen: set[int]) -> Iterator[msgspec.Struct]:
    """A type and all types it is made of; classes may be made of themselves."""
    if isinstance(info, tuple):
        for each in info:
            yield from _within(each, seen)
    elif isinstance(info, (msgspec_types.Type, msgspec_types.Field)) and id(info) not in seen:
        seen.add(id(info))
        yield info
        for name in info.__struct_fields__:
            yield from _within(getattr(info, name), seen)


# ── what does not fit ───────────────────────────────────────────────────────────────────────────────────────────


class Misfit(NamedTuple):
    """Where a value does not fit its type (`.lines[0].price`), and which rule it breaks."""

    path: str
    rule: str


def misfit_of(error: Exception) -> Misfit:
    """What an error of a decoder says; those of pydantic's models have their own words for it."""
    text = str(error)
    cause: Any = error.__cause__
    path = at[1] if (at := _AT.search(text)) else ""
    if type(cause).__module__.startswith("pydantic"):
        first, *others = cause.errors()
        more = f" (and {len(others)} more)" if others else ""
        return Misfit(path + "".join(_step(each) for each in first["loc"]), first["msg"] + more)
    return Misfit(path, _AT.sub("", text) or type(error).__name__)


def _step(place: int | str) -> str:
    return f"[{place}]" if isinstance(place, int) else f".{place}"

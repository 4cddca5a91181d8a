"""Fields of pydantic's models that a model does not write as they are, so that they would not come back from JSON."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Iterator

EXCLUDED = "which the model leaves out of its JSON"
SECRET = "which the model writes as asterisks"
REMEDIES = {
    EXCLUDED: "Use a model without exclude=True at this field, or one without this field.",
    SECRET: "Use the name under which the handler finds the secret: arguments and results are kept in the database.",
}


def lossy_fields(model: Any) -> Iterator[str]:
    """What is wrong with fields of this model, and of all models and classes that it is made of."""
    seen: set[Any] = set()
    todo = [model]
    while todo:
        kind = todo.pop()
        if kind not in seen:
            seen.add(kind)
            yield from _lossy_fields_of(kind)
            todo += [each for annotation in _annotations(kind).values() for each in _classes_in(annotation)]


def _lossy_fields_of(kind: Any) -> Iterator[str]:
    fields = getattr(kind, "__pydantic_fields__", {})
    for name, annotation in _annotations(kind).items():
        if name in fields and (fields[name].exclude or getattr(fields[name], "exclude_if", None)):
            yield f"{kind.__name__} has the field {name!r}, {EXCLUDED}"
        if any(map(_is_secret, _classes_in(annotation))) and not _has_serializer(kind, name):
            yield f"{kind.__name__} has the secret {name!r}, {SECRET}"


def _annotations(kind: Any) -> dict[str, Any]:
    """The fields of a class and their types; none of what is no class with fields."""
    if hasattr(kind, "__pydantic_fields__"):
        if not kind.__pydantic_complete__ and hasattr(kind, "model_rebuild"):
            kind.model_rebuild(raise_errors=False)  # it names classes that were defined later
        return {name: field.annotation for name, field in kind.__pydantic_fields__.items()}
    if hasattr(kind, "__dataclass_fields__") or hasattr(kind, "__total__") or hasattr(kind, "_fields"):
        with suppress(NameError):  # of a class within a function, which its model could look up
            return get_type_hints(kind)
    return {}


def _classes_in(annotation: Any) -> Iterator[Any]:
    """The classes that an annotation names: of `dict[str, list[A | None]]` also A."""
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    elif isinstance(origin := get_origin(annotation), type):
        yield origin
    aliased = (annotation.__value__,) if hasattr(annotation, "__value__") else ()
    for each in (*get_args(annotation), *aliased):
        yield from _classes_in(each)


def _is_secret(kind: Any) -> bool:
    return any(base.__module__ == "pydantic.types" and base.__name__ == "_SecretBase" for base in kind.__mro__)


def _has_serializer(kind: Any, name: str) -> bool:
    """Whether somebody wrote how this field becomes JSON; then they know."""
    decorators = getattr(kind, "__pydantic_decorators__", None)
    serializers = decorators.field_serializers.values() if decorators else ()
    return any({name, "*"} & {*each.info.fields} for each in serializers) or any(
        type(mark).__name__ in ("PlainSerializer", "WrapSerializer")
        for mark in getattr(getattr(kind, "__pydantic_fields__", {}).get(name), "metadata", ())
    )

"""The arguments of a handler, from its signature: checked when a run is submitted and again when it runs.

A signature becomes a msgspec struct once. Encoding and decoding through it is validation: what the worker will see
is exactly what was checked, and an error names the argument.
"""

from __future__ import annotations

import inspect
import re
from copy import copy
from typing import TYPE_CHECKING, Any, Self, get_args, get_type_hints

import msgspec

from mainspring.errors import InvalidArguments, InvalidInput, UnfitArguments, shortened
from mainspring.model.context import Context
from mainspring.model.conversion import decoder_of, from_json, has_sets, misfit_of, shown
from mainspring.model.dependency import ResultOf, outputs_in
from mainspring.model.payload import MAX_PAYLOAD_BYTES, encode
from mainspring.model.resource import injected_into

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mainspring.model.dependency import Path

_PLACE = re.compile(r"\.([^.\[]+)(.*)")
_UNKNOWN = re.compile(r"unknown field `([^`]+)`")
_MISSING = re.compile(r"missing required field `([^`]+)`")


class Arguments:
    """What a handler may be called with."""

    def __init__(self, job: str, function: Callable[..., Any]) -> None:
        self.job = job
        hints = hints_of(job, function)
        readable = readable_signature(inspect.signature(function), hints)
        self.injected = injected_into(job, readable)  # parameters that are given resources, and no part of the payload
        self.wants_context, signature = _without_context(job, without(readable, self.injected))
        self.described(signature, _struct_of(job, signature))

    def described(self, signature: inspect.Signature, struct: type[msgspec.Struct]) -> Self:
        """What a run's arguments are: as messages show it, and as they are read."""
        self._signature = signature
        self._struct = struct
        self._decoder = msgspec.json.Decoder(self._struct, dec_hook=from_json)
        self._has_sets = has_sets(self._struct)
        self._keyword_only = tuple(
            name
            for name, parameter in self._signature.parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        )
        return self

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._signature.parameters)

    def check_resources(self, named: Mapping[str, Any]) -> None:
        """Refuse a call here and now that leaves out what a worker would have given."""
        missing = [name for name in self.injected if name not in named]
        if missing:
            raise InvalidArguments(
                f"{self.job} is given {missing[0]!r} by its worker; called here, it lacks it.",
                hint=f"Pass it: {missing[0]}=…; or submit a run.",
                job=self.job,
                field=missing[0],
            )

    def encode(self, positional: tuple[Any, ...], named: Mapping[str, Any]) -> bytes:
        """The payload for a call with these arguments, or an error that names the one that does not fit."""
        try:
            call = self._struct(*positional, **named)
        except TypeError as error:
            raise self._not_callable(positional, named, error) from error
        payload = encode(call, what="payload", limit=MAX_PAYLOAD_BYTES, sorts=self._has_sets)
        self._check(payload)
        return payload

    def encode_with_outputs(
        self, positional: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[bytes, dict[Path, ResultOf]]:
        """The same where arguments may stand for results of other runs: null until then, and where those go."""
        try:
            return self.encode(positional, named), {}
        except InvalidInput:
            arguments = {**dict(zip(self.names, positional, strict=False)), **named}
            outputs = outputs_in(arguments)
            if not outputs:
                raise
        to_come = frozenset(str(path[0]) for path in outputs)
        known = {name: value for name, value in arguments.items() if name not in to_come}
        document = msgspec.json.decode(self._lacking(to_come).encode((), known))
        holes = {name: _without_outputs(arguments[name]) for name in to_come}
        return encode({**document, **holes}, what="payload", limit=MAX_PAYLOAD_BYTES, sorts=self._has_sets), outputs

    def _lacking(self, names: frozenset[str]) -> Arguments:
        """These arguments without some, which are not known yet: the others are checked all the same."""
        signature = without(self._signature, dict.fromkeys(names))
        return copy(self).described(signature, _struct_of(self.job, signature))

    def check_following(self, job: str, result: str | None) -> None:
        """Refuse a handler that cannot be called with nothing but the result of another job's run, if it gets that."""
        if result is not None and result not in self.names:
            raise InvalidInput(
                f"{self.job} is to get the result of {job} as {result!r}, and its handler has no such parameter.",
                code="chain-arguments",
                hint=f"Its parameters are: {', '.join(self.names) or 'none'}.",
                field="result",
                value=result,
            )
        try:
            self._lacking(frozenset([] if result is None else [result])).encode((), {})
        except InvalidInput as error:
            raise InvalidInput(
                f"{self.job} follows {job}, and is submitted with nothing but its result, if that: {error}",
                code="chain-arguments",
                hint=f'Give its other parameters defaults, or one of them the result: After("{job}", result="…").',
                field="after",
                value=job,
            ) from error

    def encode_call(self, call: Any) -> bytes:
        """The payload for one of many calls: a mapping of its arguments."""
        return self.encode((), call)

    def encode_mapping(self, named: Mapping[str, Any]) -> bytes:
        """The payload for arguments that came as data, from a command line or over the wire."""
        payload = encode(named, what="payload", limit=MAX_PAYLOAD_BYTES, sorts=self._has_sets)
        self._check(payload)
        return payload

    def decode(self, payload: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and named arguments for the handler."""
        try:
            call = self._decoder.decode(payload)
        except msgspec.ValidationError as error:
            raise unfit(self._invalid(error, payload)) from error
        if not self._keyword_only:
            return msgspec.structs.astuple(call), {}
        values = msgspec.structs.asdict(call)
        named = {name: values.pop(name) for name in self._keyword_only}
        return tuple(values.values()), named

    def decode_by_name(self, payload: bytes) -> dict[str, Any]:
        """All arguments, as the handler sees them."""
        positional, named = self.decode(payload)
        return dict(zip(self.names, positional, strict=False)) | named

    def _check(self, payload: bytes) -> None:
        try:
            self._decoder.decode(payload)
        except msgspec.ValidationError as error:
            raise self._invalid(error, payload) from error
        except msgspec.DecodeError as error:
            raise InvalidInput(
                f"The payload is not JSON: {error}.", code="payload-not-json", field="payload"
            ) from error

    def _not_callable(
        self, positional: tuple[Any, ...], named: Mapping[str, Any], error: TypeError
    ) -> InvalidArguments:
        try:
            self._signature.bind(*positional, **named)
        except TypeError as cause:
            error = cause
        return InvalidArguments(
            f"{self.job} cannot be called like that: {error}.",
            hint=f"It takes {self._signature}.",
            job=self.job,
            field=next(iter(re.findall(r"'([^']+)'", str(error))), None),
        )

    def _invalid(self, error: msgspec.ValidationError, payload: bytes) -> InvalidArguments:
        path, rule = misfit_of(error)
        place = _PLACE.match(path)
        unknown, missing = _UNKNOWN.search(rule), _MISSING.search(rule)
        field = place[1] if place else (unknown or missing or [None, None])[1]
        where = f"argument {field!r}{place[2] if place else ''}" if field else "the payload"
        value = _value_at(payload, field)
        found = f" (it is {value})" if place and value else ""
        return InvalidArguments(
            f"{self.job}: {where} does not fit: {rule}{found}.",
            hint=f"It takes {self._signature}.",
            job=self.job,
            field=field,
            value=value,
            rule=rule,
        )


def _without_outputs(value: Any) -> Any:
    if isinstance(value, ResultOf):
        return None
    return [None if isinstance(each, ResultOf) else each for each in value]


def unfit(error: InvalidArguments) -> UnfitArguments:
    """The same about arguments that were stored, and fitted then."""
    return UnfitArguments(error.message, code=UnfitArguments.code, hint=error.hint, **error.fields)


def _value_at(payload: bytes, field: str | None) -> str | None:
    whole = msgspec.json.decode(payload)
    if field is None or not isinstance(whole, dict) or field not in whole:
        return None
    return shortened(whole[field])


def hints_of(job: str, function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a handler as types; `return` is the one of its result."""
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise InvalidInput(
            f"The annotations of {job} cannot be read: {error}.",
            code="invalid-handler",
            hint="Import the types it names at run time, not only for type checking.",
        ) from error


def readable_signature(signature: inspect.Signature, hints: dict[str, Any]) -> inspect.Signature:
    """As messages show it: types instead of their texts, and nothing about what is returned."""
    parameters = [each.replace(annotation=hints.get(each.name, each.empty)) for each in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=signature.empty)


def without(signature: inspect.Signature, names: Mapping[str, object]) -> inspect.Signature:
    return signature.replace(parameters=[each for each in signature.parameters.values() if each.name not in names])


def _without_context(job: str, signature: inspect.Signature) -> tuple[bool, inspect.Signature]:
    """A first parameter annotated `Context` is injected, not stored."""
    parameters = list(signature.parameters.values())
    is_first = bool(parameters) and parameters[0].annotation is Context
    wants_context = is_first and parameters[0].kind is not inspect.Parameter.KEYWORD_ONLY
    stored = parameters[1:] if wants_context else parameters
    for each in stored:
        if each.annotation is Context or Context in get_args(each.annotation):
            raise _misplaced_context(job, each)
    return wants_context, signature.replace(parameters=stored)


def _misplaced_context(job: str, parameter: inspect.Parameter) -> InvalidInput:
    return InvalidInput(
        f"{job}: {parameter.name!r} is annotated {shown(parameter.annotation)};"
        " a Context is given to the first parameter, and to that alone.",
        code="context-not-first",
        hint=f"Write: def {job}({parameter.name}: Context, …).",
        job=job,
        field=parameter.name,
    )


def _struct_of(job: str, signature: inspect.Signature) -> type[msgspec.Struct]:
    positional: list[Any] = []
    keyword_only: list[Any] = []
    for parameter in signature.parameters.values():
        field = _field_of(job, parameter)
        (keyword_only if parameter.kind is parameter.KEYWORD_ONLY else positional).append(field)
    base = msgspec.defstruct(f"{job}_positional", positional, forbid_unknown_fields=True)
    return msgspec.defstruct(f"{job}_arguments", keyword_only, bases=(base,), kw_only=True, forbid_unknown_fields=True)


def _field_of(job: str, parameter: inspect.Parameter) -> tuple[str, Any] | tuple[str, Any, Any]:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        raise InvalidInput(
            f"{job} takes '{parameter}'; a job's arguments are stored by name and cannot be open-ended.",
            code="invalid-handler",
            hint="Name every argument, or take one list or dict.",
            job=job,
            field=parameter.name,
        )
    kind = Any if parameter.annotation is parameter.empty else parameter.annotation
    decoder = decoder_of(kind, job, f"argument {parameter.name!r}", parameter.name)
    if parameter.default is parameter.empty:
        return parameter.name, kind
    _check_default(job, parameter, decoder)
    return parameter.name, kind, _default(parameter.default)


def _check_default(job: str, parameter: inspect.Parameter, decoder: msgspec.json.Decoder[Any]) -> None:
    """A run that leaves the argument out stores the default, and is checked like any other."""
    try:
        decoder.decode(encode(parameter.default, what="payload", limit=MAX_PAYLOAD_BYTES))
    except (InvalidInput, msgspec.ValidationError) as error:
        rule = error.fields["rule"] if isinstance(error, InvalidInput) else misfit_of(error).rule
        raise InvalidInput(
            f"{job}: the default of {parameter.name!r} does not fit: {rule} (it is {shortened(parameter.default)}).",
            code="invalid-default",
            hint="Change the default or the annotation, as in: str | None = None.",
            job=job,
            field=parameter.name,
            value=shortened(parameter.default),
            rule=rule,
        ) from error


def _default(value: Any) -> Any:
    if isinstance(value, (list, dict, set, bytearray)):
        return msgspec.field(default_factory=lambda: copy(value))
    return msgspec.field(default=value)

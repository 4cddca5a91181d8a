"""Arguments come back from JSON as what they were; what cannot is refused when it is annotated."""

from __future__ import annotations

import enum
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import pydantic
import pytest
from tests.values import AT, CASES, ORDER, Address, Line, Order

from mainspring.errors import InvalidArguments, InvalidInput
from mainspring.model.arguments import Arguments

if TYPE_CHECKING:
    from collections.abc import Callable


def taking(annotation: Any, default: Any = ...) -> Callable[..., None]:
    def handler(value): ...  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, RUF100

    handler.__annotations__ = {"value": annotation}
    handler.__defaults__ = None if default is ... else (default,)
    return handler


@pytest.mark.parametrize(("annotation", "value"), CASES, ids=str)
def test_an_argument_comes_back_as_it_was(annotation: Any, value: Any) -> None:
    arguments = Arguments("send", taking(annotation))

    ((came_back,), _) = arguments.decode(arguments.encode((value,), {}))

    assert came_back == value
    assert type(came_back) is (float if annotation is float else type(value))


# ── pydantic ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_error_of_a_model_names_the_argument_the_place_and_the_rule() -> None:
    arguments = Arguments("send", taking(list[Order]))
    order = {"no": 1, "at": "2031-01-01T00:00:00Z", "lines": [{"price": "free"}]}

    with pytest.raises(InvalidArguments) as caught:
        arguments.encode_mapping({"value": [order]})

    assert caught.value.fields["field"] == "value"
    assert "send: argument 'value'[0].lines[0].price does not fit: Input should be a valid decimal" in str(caught.value)
    assert "pydantic.dev" not in str(caught.value)


def test_an_error_of_a_model_says_how_many_more_there_are() -> None:
    with pytest.raises(InvalidArguments, match=r"argument 'value'\.no.*\(and 1 more\)"):
        Arguments("send", taking(Order)).encode_mapping({"value": {"no": 0, "at": "today"}})


@pytest.mark.parametrize("name", ["no", "number"])
def test_arguments_that_come_as_data_may_use_aliases_or_names(name: str) -> None:
    arguments = Arguments("send", taking(Order))
    payload = arguments.encode_mapping({"value": {name: 7, "at": AT.isoformat(), "lines": []}})

    assert arguments.decode(payload)[0][0].number == 7


def test_what_a_model_cannot_hold_in_json_is_refused_before_it_is_stored() -> None:
    class Reading(pydantic.BaseModel):
        degrees: float

    with pytest.raises(InvalidInput, match="NaN or infinity"):
        Arguments("measure", taking(Reading)).encode((Reading(degrees=float("nan")),), {})


class Opened(pydantic.BaseModel):
    key: pydantic.SecretStr
    token: Annotated[pydantic.SecretStr, pydantic.PlainSerializer(lambda token: token.get_secret_value())]

    @pydantic.field_serializer("key", when_used="json")
    def _as_it_is(self, key: pydantic.SecretStr) -> str:
        return key.get_secret_value()


def test_a_secret_that_its_model_writes_as_it_is_comes_back() -> None:
    arguments = Arguments("send", taking(Opened))
    opened = Opened(key=pydantic.SecretStr("a"), token=pydantic.SecretStr("b"))

    assert arguments.decode(arguments.encode((opened,), {})) == ((opened,), {})


def test_pydantic_is_not_imported_for_those_who_do_not_use_it() -> None:
    program = """
        import sys
        from pathlib import Path
        from mainspring import Mainspring
        app = Mainspring("postgresql://nobody@nowhere.invalid/nothing")
        @app.job
        def send(file: Path) -> Path: return file
        send.handler.arguments.decode(send.handler.arguments.encode((Path("x"),), {}))
        assert "pydantic" not in sys.modules and "attrs" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


# ── refused when it is annotated ────────────────────────────────────────────────────────────────────────────────


class Mixed(enum.Enum):
    ONE = 1
    A = "a"


@dataclass
class Unhashable:
    number: int


@dataclass
class Holder:
    parts: list[Fraction]


@pydantic.dataclasses.dataclass
class Checked:
    number: int


class Forgetful(pydantic.BaseModel):
    number: int = pydantic.Field(7, exclude=True)


class Login(pydantic.BaseModel):
    password: pydantic.SecretStr


class Keys(pydantic.BaseModel):
    keys: dict[str, list[pydantic.SecretBytes] | None] = {}


class Sealed(pydantic.BaseModel):
    day: pydantic.Secret[datetime]


class Logins(pydantic.BaseModel):
    by_name: dict[str, list[Login]]


class Later(pydantic.BaseModel):
    of: MadeLater | None = None


class MadeLater(pydantic.BaseModel):
    secret: Annotated[pydantic.SecretStr, pydantic.Field(min_length=3)]


@dataclass
class Account:
    login: Login


class Accounts(pydantic.BaseModel):
    accounts: list[Account]


REFUSED: list[tuple[Any, str]] = [
    (
        Fraction,
        "is annotated fractions.Fraction, which cannot be kept as JSON: fractions.Fraction has no form in JSON.",
    ),
    (list[Fraction], "fractions.Fraction has no form in JSON"),
    (Holder, "fractions.Fraction has no form in JSON"),
    (complex, "complex has no form in JSON"),
    (Iterator[int], "Iterator has no form in JSON"),
    (Mixed, "Enums must contain either all str or all int values"),
    (datetime | str, "Type unions may not contain more than one str-like type"),
    (Address | Holder, "Type unions may not contain more than one dataclass or attrs type"),
    (Order | Line, "Type unions may not contain more than one custom type"),
    (Order | str, "Type unions containing a custom type may not contain any additional types"),
    (dict[tuple[int, int], str], "a key of a JSON object is one text"),
    (dict[int | str, str], "a key of a JSON object is one text"),
    (dict[Address, str], "a key of a JSON object is one text"),
    (set[Unhashable], "Unhashable is not hashable, and cannot be in a set"),
    (Checked, "Checked is a dataclass of pydantic, whose validation would be passed over: use a model"),
    (Forgetful, "Forgetful has the field 'number', which the model leaves out of its JSON"),
    (dict[str, list[Forgetful]], "Forgetful has the field 'number', which the model leaves out of its JSON"),
    (Login, "Login has the secret 'password', which the model writes as asterisks"),
    (list[Login | None], "Login has the secret 'password', which the model writes as asterisks"),
    (Account, "Login has the secret 'password', which the model writes as asterisks"),
    (Accounts, "Login has the secret 'password', which the model writes as asterisks"),
    (Logins, "Login has the secret 'password', which the model writes as asterisks"),
    (Keys, "Keys has the secret 'keys', which the model writes as asterisks"),
    (Sealed, "Sealed has the secret 'day', which the model writes as asterisks"),
    (Later, "MadeLater has the secret 'secret', which the model writes as asterisks"),
    (pydantic.SecretStr, "SecretStr has no form in JSON"),
    (Annotated[int, pydantic.Field(gt=0)], "constraints of pydantic count within its models only"),
    (list[pydantic.PositiveInt], "constraints of pydantic count within its models only"),
]


@pytest.mark.parametrize(("annotation", "reason"), REFUSED, ids=str)
def test_a_parameter_that_cannot_be_kept_is_refused_by_name(annotation: Any, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Arguments("send", taking(annotation))

    assert caught.value.code == "unsupported-type"
    assert caught.value.fields["field"] == "value"
    assert caught.value.message.startswith("send: argument 'value' is annotated ")
    assert reason in caught.value.message
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("Use ")


@pytest.mark.parametrize(
    ("annotation", "default", "rule"),
    [(int, None, "Expected `int`, got `null`"), (Any, object(), "Encoding objects of type object is unsupported")],
)
def test_a_default_that_does_not_fit_is_refused(annotation: Any, default: Any, rule: str) -> None:
    with pytest.raises(InvalidInput, match="send: the default of 'value' does not fit: ") as caught:
        Arguments("send", taking(annotation, default))

    assert caught.value.code == "invalid-default"
    assert caught.value.fields["rule"] == rule


def test_a_default_may_be_of_any_type_that_fits() -> None:
    assert Arguments("send", taking(Order, ORDER)).decode(b"{}") == ((ORDER,), {})

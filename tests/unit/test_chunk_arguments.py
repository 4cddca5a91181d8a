"""What a chunk handler looks like: what its signature says about one run, what is refused, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypedDict
from uuid import UUID, uuid4

import attrs
import msgspec
import pydantic
import pytest

from mainspring import Cancel, ChunkJob, Context, Mainspring, Retry
from mainspring.errors import InvalidAnswers, InvalidArguments, InvalidInput, InvalidResult
from mainspring.model.chunk import ChunkArguments, answers_of
from mainspring.model.job import JobDefinition, definition_of


@pytest.fixture
def app() -> Mainspring:
    return Mainspring("postgresql://nobody@nowhere.invalid/nothing")


@dataclass
class Reading:
    sensor: int
    celsius: float = 20.0
    id: UUID = field(default_factory=uuid4)
    sum: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        if self.celsius < -273.15:
            raise ValueError("colder than cold")
        self.sum = self.sensor + self.celsius


class Struct(msgspec.Struct, rename="camel"):
    sensor_id: int
    path: Path = Path("/")


class Pair(NamedTuple):
    sensor: int
    at: datetime


@attrs.define
class Drawn:
    sensor: int
    celsius: float = 20.0


class Keys(TypedDict):
    sensor: int
    note: str


class Model(pydantic.BaseModel):
    sensor: int = pydantic.Field(gt=0)
    celsius: float = 20.0


async def store(readings: list[Reading]) -> None: ...
async def store_structs(items: list[Struct]) -> None: ...
async def store_pairs(items: list[Pair]) -> None: ...
async def store_drawn(items: list[Drawn]) -> None: ...
async def store_keys(items: list[Keys]) -> None: ...
async def store_models(items: list[Model]) -> None: ...


NOON = datetime(2031, 1, 1, 12, tzinfo=UTC)


# ── the arguments of one run ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("function", "item", "fields"),
    [
        (store, Reading(7, 21.5), {"sensor": 7, "celsius": 21.5}),
        (store_structs, Struct(7, Path("/tmp")), {"sensor_id": 7, "path": Path("/tmp")}),
        (store_pairs, Pair(7, NOON), {"sensor": 7, "at": NOON}),
        (store_drawn, Drawn(7), {"sensor": 7}),
        (store_keys, {"sensor": 7, "note": "x"}, {"sensor": 7, "note": "x"}),
        (store_models, Model(sensor=7), {"sensor": 7}),
    ],
)
def test_a_run_is_submitted_with_an_item_or_with_its_fields(function: Any, item: Any, fields: dict[str, Any]) -> None:
    arguments = ChunkArguments("store", function)
    of_item, of_fields = arguments.encode((item,), {}), arguments.encode((), fields)
    ((first,), _), ((second,), _) = arguments.decode(of_item), arguments.decode(of_fields)

    assert first == item
    assert type(first) is type(item)
    if isinstance(item, Reading):
        second.id = item.id
    assert second == item


def test_arguments_that_come_as_plain_json_are_read_by_their_types() -> None:
    arguments = ChunkArguments("store", store_pairs)

    assert arguments.decode(arguments.encode((), {"sensor": 7, "at": "2031-01-01T12:00:00Z"}))[0] == (Pair(7, NOON),)


def test_defaults_are_made_anew_for_each_run_and_kept_with_it() -> None:
    arguments = ChunkArguments("store", store)
    payloads = [arguments.encode((), {"sensor": 7}) for _ in range(2)]

    ids = {arguments.decode(payload)[0][0].id for payload in payloads}
    assert len(ids) == 2
    assert {arguments.decode(payload)[0][0].id for payload in payloads} == ids


def test_a_run_that_leaves_out_what_has_a_default_can_be_read() -> None:
    """Somebody else submitted it, who does not know the class."""
    ((reading,), _) = ChunkArguments("store", store).decode(b'{"sensor":7}')

    assert (reading.sensor, reading.celsius) == (7, 20.0)


def test_the_payload_is_that_of_a_plain_job_with_these_arguments(app: Mainspring) -> None:
    @app.job
    async def plain(sensor: int, at: datetime) -> None: ...

    payload = ChunkArguments("store", store_pairs).encode((Pair(7, NOON),), {})
    assert plain.handler.arguments.decode(payload) == ((7, NOON), {})


@pytest.mark.parametrize(
    ("function", "fields", "name", "message"),
    [
        (store, {"sensor": "x"}, "sensor", "argument 'sensor' does not fit: Expected `int`, got `str`"),
        (store, {"celsius": 1.0}, "sensor", "missing"),
        (store, {"sensor": 1, "sum": 3.0}, "sum", "cannot be called like that"),
        (store, {"sensor": 1, "colour": 3}, "colour", "cannot be called like that"),
        (store, {"sensor": 1, "celsius": -300.0}, None, "no Reading can be made of these arguments: colder than cold"),
        (store_models, {"sensor": 0}, "sensor", "Input should be greater than 0"),
        (store_models, {"sensor": 1, "colour": 3}, "colour", "cannot be called like that"),
    ],
)
def test_fields_that_do_not_fit_are_refused_and_named(
    function: Any, fields: dict[str, Any], name: str | None, message: str
) -> None:
    with pytest.raises(InvalidArguments, match=message) as caught:
        ChunkArguments("store", function).encode((), fields)

    assert caught.value.fields.get("field") == name


@pytest.mark.parametrize("given", [(7,), ("seven",), (Struct(7),), (7, 21.5)])
def test_what_is_no_item_is_refused(given: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidArguments, match=r"store"):
        ChunkArguments("store", store).encode(given, {})


def test_a_stored_payload_that_no_longer_fits_is_refused_like_that_of_any_job() -> None:
    arguments = ChunkArguments("store", store)

    for payload in (b'{"sensor":"x"}', b'{"sensor":1,"colour":2}', b'{"sensor":1,"celsius":-300}'):
        with pytest.raises(InvalidArguments):
            arguments.decode(payload)


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────────────────


def _no_list(readings: Reading) -> None: ...
def _of_numbers(numbers: list[int]) -> None: ...
def _bare(readings: list) -> None: ...  # type: ignore[type-arg]
def _nothing() -> None: ...
def _two(readings: list[Reading], more: list[Reading]) -> None: ...
def _one_context(context: Context, readings: list[Reading]) -> None: ...
def _contexts_last(readings: list[Reading], contexts: list[Context]) -> None: ...
def _unannotated(readings) -> None: ...  # type: ignore[no-untyped-def]
def _returns_one(readings: list[Reading]) -> int: ...  # type: ignore[empty-body]
def _returns_a_dict(readings: list[Reading]) -> dict[str, int]: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_no_list, "'readings' is annotated .*Reading, and gets a list"),
        (_of_numbers, "'numbers' is a list of int, which does not name a run's arguments"),
        (_bare, "'readings' is annotated list, and gets a list"),
        (_nothing, "it takes 0 arguments"),
        (_two, "it takes 2 arguments"),
        (_one_context, "it takes 2 arguments"),
        (_contexts_last, "it takes 2 arguments"),
        (_unannotated, "'readings' is annotated with nothing"),
        (_returns_one, "returns int; it must be a list with one answer for each run"),
        (_returns_a_dict, "returns dict"),
    ],
)
def test_a_signature_that_cannot_be_that_of_a_chunk_handler_is_refused(
    app: Mainspring, function: Any, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        app.job(chunk=10)(function)

    assert caught.value.code == "invalid-chunk-handler"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"chunk": 0}, "invalid-chunk", "chunk is 0; it must be a whole number from 1 to 1,000"),
        ({"chunk": 1_001}, "invalid-chunk", "chunk is 1001"),
        ({"chunk": "ten"}, "invalid-chunk", "must be a whole number"),
        ({"chunk": True}, "invalid-chunk", "must be a whole number"),
        ({"chunk": 5, "chunk_wait": -1}, "invalid-chunk-wait", "must be from 0 to 60 seconds"),
        ({"chunk": 5, "chunk_wait": timedelta(minutes=2)}, "invalid-chunk-wait", "must be from 0 to 60 seconds"),
        ({"chunk": 5, "chunk_wait": "long"}, "invalid-chunk-wait", "a timedelta or a number of seconds"),
        ({"chunk_wait": 1.0}, "chunk-wait-without-chunk", "there is no chunk"),
        ({"chunk": 5, "isolated": True}, "chunk-isolated", "a process of its own is for one run"),
        ({"chunk": 5, "delivery": "at_most_once"}, "chunk-delivery", "claimed one at a time"),
        ({"chunk": 5, "delivery": "transactional"}, "chunk-delivery", "claimed one at a time"),
    ],
)
def test_options_that_break_a_rule_are_refused(
    app: Mainspring, options: dict[str, Any], code: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        app.job(**options)(store)

    assert (caught.value.code, caught.value.fields["field"]) == (
        code,
        "chunk_wait" if "wait" in code else "chunk",
    )


def test_a_program_cannot_be_called_for_a_chunk(app: Mainspring) -> None:
    with pytest.raises(InvalidInput, match="a process of its own is for one run"):
        app.command("backup", ["pg_dump"], chunk=5)


# ── the definition ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_stored_definition_says_how_runs_share_calls() -> None:
    document = JobDefinition(name="store", chunk=100, chunk_wait=0.5).as_document()  # type: ignore[arg-type]

    assert (document["chunk"], document["chunk_wait"]) == (100, "PT0.5S")
    assert definition_of(document).chunk_wait == timedelta(seconds=0.5)
    assert JobDefinition(name="store", chunk=100).chunk_wait == timedelta(seconds=0.2)


def test_the_definition_of_any_other_job_is_what_it_was_before() -> None:
    """Else each would get a new version."""
    assert not {"chunk", "chunk_wait"} & JobDefinition(name="store").as_document().keys()


# ── what it answers ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("result", [[], [1], [1, 2, 3], 7, "ab", {"a": 1, "b": 2}, object()])
def test_answers_must_be_one_for_each_run(result: Any) -> None:
    with pytest.raises(InvalidAnswers, match="store was called for 2 runs and returned") as caught:
        answers_of("store", result, 2)

    assert (caught.value.code, caught.value.fields["field"]) == ("invalid-answers", "return")


def test_nothing_and_a_decision_stand_for_all_runs() -> None:
    retry = Retry("later")

    assert answers_of("store", None, 2) == [None, None]
    assert answers_of("store", retry, 2) == [retry, retry]
    assert answers_of("store", (1, retry), 2) == (1, retry)


def _answers_and_errors(readings: list[Reading]) -> list[int | Exception | Cancel]: ...  # type: ignore[empty-body]


def test_the_result_of_a_run_is_of_the_type_that_the_list_is_of(app: Mainspring) -> None:
    returns = app.job(chunk=5)(_answers_and_errors).handler.returns

    assert returns.encode(7) == b"7"
    with pytest.raises(InvalidResult):
        returns.encode("seven")


def test_calling_the_job_calls_the_handler_with_a_list(app: Mainspring) -> None:
    @app.job(chunk=5)
    def count(readings: list[Reading]) -> list[int]:
        return [len(readings)] * len(readings)

    assert isinstance(count, ChunkJob)
    assert isinstance(count.options(priority=1), ChunkJob)
    assert count([Reading(1), Reading(2)]) == [2, 2]

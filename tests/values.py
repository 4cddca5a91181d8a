"""Values of every kind that arguments and results may have, each with its annotation."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict
from uuid import UUID

import attrs
import msgspec
import pydantic


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Right(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class Address:
    street: str
    number: int


@dataclass
class Tree:
    name: str
    children: list[Tree] = field(default_factory=list)
    file: Path | None = None


@attrs.define
class Parcel:
    weight: Decimal
    to: Address


class Point(msgspec.Struct):
    x: float
    files: set[Path] = set()


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    name: str


class Pair(NamedTuple):
    left: int
    right: Colour


class Options(TypedDict):
    since: date
    colour: NotRequired[Colour]


class Line(pydantic.BaseModel):
    price: Decimal
    file: Path | None = None


class Order(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, extra="forbid")

    number: int = pydantic.Field(gt=0, validation_alias="no", serialization_alias="nr")
    at: datetime
    lines: list[Line] = []
    colour: Colour = Colour.RED

    @pydantic.computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated properties
    @property
    def total(self) -> Decimal:
        return sum((line.price for line in self.lines), Decimal())


class Ticket(pydantic.BaseModel, frozen=True):
    seat: str


class Tickets(pydantic.RootModel[list[Ticket]]):
    pass


AT = datetime(2031, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
LINE = Line(price=Decimal("1.10"), file=Path("a/b"))
ORDER = Order.model_validate({"no": 7, "at": AT, "lines": [LINE]})
ADDRESS = Address("Elm", 3)

CASES: list[tuple[Any, Any]] = [
    (int, 5),
    (float, 2),
    (str, "é"),
    (bool, True),
    (bytes, b"\x00\xff"),
    (None, None),
    (Decimal, Decimal("1.10")),
    (UUID, UUID(int=7)),
    (datetime, AT),
    (datetime, AT.replace(tzinfo=timezone(timedelta(hours=2)))),
    (date, AT.date()),
    (time, time(1, 2, 3, 4)),
    (timedelta, timedelta(days=1, microseconds=3)),
    (Path, Path("/tmp/x")),
    (PurePosixPath, PurePosixPath("x/y")),
    (Colour, Colour.RED),
    (Level, Level.HIGH),
    (Right, Right.READ),
    (Literal["a", "b"], "a"),
    (list[Decimal], [Decimal("0.1")]),
    (set[UUID], {UUID(int=1), UUID(int=2)}),
    (frozenset[Path], frozenset({Path("x")})),
    (tuple[int, Colour], (1, Colour.RED)),
    (tuple[date, ...], (AT.date(), AT.date())),
    (Sequence[timedelta], [timedelta(seconds=1)]),
    (Mapping[str, Path], {"a": Path("b")}),
    (dict[UUID, Order], {UUID(int=1): ORDER}),
    (dict[Path, int], {Path("x"): 1}),
    (dict[Colour, Ticket], {Colour.RED: Ticket(seat="1a")}),
    (Decimal | None, None),
    (int | str, "x"),
    (Order | None, ORDER),
    (list[Order | None], [None, ORDER]),
    (set[Ticket], {Ticket(seat="1a")}),
    (Cat | Dog, Dog("Rex")),
    (Address, ADDRESS),
    (set[Address], {ADDRESS}),
    (Tree, Tree("a", [Tree("b", file=Path("c"))])),
    (Parcel, Parcel(Decimal("2.5"), ADDRESS)),
    (Point, Point(1.5, {Path("x")})),
    (Pair, Pair(1, Colour.RED)),
    (Options, {"since": AT.date(), "colour": Colour.RED}),
    (Order, ORDER),
    (dict[str, object], {"a": [1, None]}),
    (Tickets, Tickets([Ticket(seat="1a")])),
]

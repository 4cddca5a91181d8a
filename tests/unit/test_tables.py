"""Tables that fit their terminal, and the ids that they shorten."""

from __future__ import annotations

import pytest
from rich.text import Text

from mainspring.cli.parsing import is_beginning_of_id, whole_id
from mainspring.cli.tables import Column, fitted, whole, wrapped
from mainspring.cli.text import counted
from mainspring.errors import InvalidInput

ONE, OTHER = "0199a1b2-c3d4-8005-9f00-0123456789ab", "0199a1b2-ffff-8005-9f00-0123456789ab"

COLUMNS = (
    Column("worker", is_id=True),
    Column("host", least=10),
    Column("empty"),
    Column("slots", is_number=True),
    Column("version", leave_out=2),
    Column("started", leave_out=1),
)
ROW = (ONE, "node-7.example.org", "", "1,200", "0.1.0", "3 min ago")


def lines(room: int | None) -> list[str]:
    return [line.plain for line in fitted(COLUMNS, [[Text(cell) for cell in ROW]], room)]


def test_where_there_is_room_everything_is_shown() -> None:
    whole = [
        "worker                                host                empty  slots  version  started",
        f"{ONE}  node-7.example.org         1,200  0.1.0    3 min ago",
    ]
    assert lines(None) == lines(len(whole[1])) == whole


def test_ids_give_way_first_then_texts_down_to_their_least_then_what_matters_least() -> None:
    assert lines(60) == [
        "worker    host                slots  version  started",
        "0199a1b2  node-7.example.org  1,200  0.1.0    3 min ago",
    ]
    assert lines(50) == [
        "worker    host           slots  version  started",
        "0199a1b2  node-7.examp…  1,200  0.1.0    3 min ago",
    ]
    assert lines(42) == [
        "worker    host            slots  started",
        "0199a1b2  node-7.exampl…  1,200  3 min ago",
    ]
    assert lines(30) == ["worker    host           slots", "0199a1b2  node-7.examp…  1,200"]


def test_headings_and_numbers_are_never_cut() -> None:
    assert lines(5) == ["worker    host        slots", "0199a1b2  node-7.ex…  1,200"]


def test_wide_characters_take_two_columns() -> None:
    (_, line) = fitted((Column("job", least=4), Column("n")), [[Text("日本語の仕事"), Text("1")]], 10)
    assert (line.plain, line.cell_len) == ("日本語…  1", 10)


def test_the_beginning_of_an_id_stands_for_it_if_there_is_only_one() -> None:
    assert whole_id("0199A1B2-C", [ONE, OTHER]) == ONE
    assert whole_id("abcd", [ONE, OTHER]) == "abcd"
    with pytest.raises(InvalidInput, match="is the beginning of 2 ids") as caught:
        whole_id("0199a1b2", [ONE, OTHER])
    assert (caught.value.code, caught.value.hint) == ("ambiguous-id", f"Give more of it: {ONE} or {OTHER}.")


@pytest.mark.parametrize(("text", "is_one"), [("0199", True), ("019", False), (ONE, False), ("mail", False)])
def test_what_may_be_the_beginning_of_an_id(text: str, is_one: bool) -> None:
    assert is_beginning_of_id(text) is is_one


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 runs"), (1, "1 run"), (1.01, "1 run"), (1.5, "1.5 runs"), (2, "2 runs"), (1_200, "1,200 runs")],
)
def test_one_is_singular(count: float, words: str) -> None:
    assert counted(count, "run") == words


WHOLE = (Column("name"), Column("state"), Column("when", is_below=True), Column("tags", leave_out=1))
ROWS = [
    [Text("nightly"), Text("active"), Text("0 2 * * *"), Text("vip")],
    [Text("reports-of-customer-42"), Text("paused"), Text("0 9 * * 1 zone=Europe/Berlin"), Text("")],
]
ALL = """
name                    state   when                          tags
nightly                 active  0 2 * * *                     vip
reports-of-customer-42  paused  0 9 * * 1 zone=Europe/Berlin
"""
WITHOUT_TAGS = """
name                    state   when
nightly                 active  0 2 * * *
reports-of-customer-42  paused  0 9 * * 1 zone=Europe/Berlin
"""
BELOW = """
name                    state
nightly                 active
  0 2 * * *
reports-of-customer-42  paused
  0 9 * * 1 zone=Europe/Berlin
"""
ALL_BELOW = """
nightly
  active
  0 2 * * *
reports-of-customer-42
  paused
  0 9 * * 1
  zone=Europe/Berlin
"""


@pytest.mark.parametrize(("room", "lines"), [(66, ALL), (60, WITHOUT_TAGS), (59, BELOW), (30, BELOW), (24, ALL_BELOW)])
def test_nothing_is_cut_where_all_is_wanted(room: int, lines: str) -> None:
    assert [line.plain for line in whole(WHOLE, ROWS, room)] == lines.strip().splitlines()


@pytest.mark.parametrize("room", range(4, 30))
@pytest.mark.parametrize("text", ["明日の朝 請求書を送る", "every day at 09:00", "日本語abc日本語" * 3, "a  b"])
def test_texts_are_wrapped_by_cells_and_lose_nothing(text: str, room: int) -> None:
    lines = list(wrapped(Text(text, style="dim"), room, first=""))
    assert all(line.cell_len <= room for line in lines)
    assert "".join("".join(line.plain for line in lines).split()) == "".join(text.split())
    assert all(line.style == "dim" for line in lines)
    assert [line.plain for line in lines[1:]] == [f"  {line.plain.strip()}" for line in lines[1:]]


def test_a_text_without_words_has_no_lines() -> None:
    assert list(wrapped(Text("  "), 20)) == []

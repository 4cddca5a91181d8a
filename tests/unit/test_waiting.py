"""No test waits for a while: on a busy machine that is too short, on an idle one too long, and it proves nothing."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parents[1]
# Applications whose handlers sleep because that is their work, and a line that is as slow as it is told to be.
SLEEPERS = {
    TESTS / "system" / f"{name}.py"
    for name in ("abandoning_program", "faulty_app", "poison_app", "proxy", "slow_closing_app", "surrounded_app")
}
EXCEPTIONS = {*SLEEPERS, TESTS / "waiting.py", Path(__file__)}
FILES = sorted(set(TESTS.rglob("*.py")) - EXCEPTIONS)
REMEDY = "wait for the event itself: tests.waiting.until, an asyncio.Event, or the frozen clock"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(TESTS)))
def test_nobody_sleeps(file: Path) -> None:
    assert list(sleeps(file.read_text(encoding="utf-8"))) == [], REMEDY


@pytest.mark.parametrize("file", sorted(SLEEPERS), ids=lambda file: str(file.name))
def test_every_exception_is_one(file: Path) -> None:
    assert list(sleeps(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("await asyncio.sleep(0.3)", ["asyncio.sleep(0.3)"]),
        ("time.sleep(seconds)", ["time.sleep(seconds)"]),
        ("Event().wait(0.1)", ["Event().wait(0.1)"]),
        ("execute('select pg_' 'sleep(1)')", ["'select pg_sleep(1)'"]),
        ("await asyncio.sleep(0)", []),  # a turn of the loop
        ("await asyncio.Event().wait()", []),  # until somebody ends it
        ("await is_over.wait()", []),
    ],
)
def test_a_sleep_is_found(code: str, found: list[str]) -> None:
    assert list(sleeps(code)) == found


def sleeps(code: str) -> Iterator[str]:
    """Every wait for a span of time, and for nothing else."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and (_is_sleep(node) or _waits_in_vain(node)):
            yield ast.unparse(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "pg_sleep(" in node.value:
            yield ast.unparse(node)


def _is_sleep(call: ast.Call) -> bool:
    is_turn = bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
    return ast.unparse(call.func).rpartition(".")[2] == "sleep" and not is_turn


def _waits_in_vain(call: ast.Call) -> bool:
    """For an event that nobody else knows."""
    return ast.unparse(call.func).endswith("Event().wait") and bool(call.args or call.keywords)

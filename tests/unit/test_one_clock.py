"""One clock: SQL asks `clock_now()`, Python asks a Clock. Whoever asks the host does not hear what a test has set."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import mainspring

PACKAGE = Path(mainspring.__file__).parent
SQL = [
    file for file in sorted((PACKAGE / "store" / "sql").rglob("*.sql")) if file.parent.name != "health"
]  # of the host
PYTHON = [file for file in sorted(PACKAGE.rglob("*.py")) if file != PACKAGE / "clock.py"]

HOST_TIME = re.compile(
    r"\b(?:now|clock_timestamp|statement_timestamp|transaction_timestamp)\s*\(|\b(?:current_(?:timestamp|date)|localtime)"
)
ASKING_THE_HOST = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.time", "time.time_ns"}
EXCEPTIONS = (
    "as 'select now()'",  # the clock itself
    "applied_at timestamptz not null default now()",  # of migrations, before there is a clock
    "clock_timestamp() - now()",  # a span
    "clock_now() + (statement_timestamp() - now())",  # the same
)


@pytest.mark.invariant(10)
@pytest.mark.parametrize("file", SQL, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_sql_asks_one_clock(file: Path) -> None:
    lines = [line.partition("--")[0] for line in file.read_text(encoding="utf-8").splitlines()]
    suspicious = [line for line in lines if not any(known in line for known in EXCEPTIONS)]

    assert [line for line in suspicious if HOST_TIME.search(line)] == []


@pytest.mark.invariant(10)
def test_python_asks_one_clock() -> None:
    calls = {
        f"{file.relative_to(PACKAGE)}:{node.lineno}"
        for file in PYTHON
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ASKING_THE_HOST
    }

    assert calls == set()

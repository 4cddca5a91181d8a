"""Finding an application by its path, and saying why it cannot be found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mainspring.app.loading import load_app
from mainspring.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def refusal(path: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        load_app(path)
    return caught.value


def test_a_module_that_does_not_compile_is_named_with_its_line(folder: Path) -> None:
    (folder / "half_written.py").write_text("app = None\napp = Mainspring(\n")

    error = refusal("half_written:app")

    assert error.code == "app-broken"
    assert error.message.endswith(f"SyntaxError in {folder}/half_written.py, line 2: '(' was never closed.")
    assert error.hint == "To see how it comes to that: python -c 'import half_written'"


def test_a_module_that_lacks_something_is_not_mistaken_for_a_missing_one(folder: Path) -> None:
    (folder / "lacking.py").write_text("import a_module_that_is_not_there\n")

    error = refusal("lacking:app")

    assert error.code == "app-broken"
    assert "ModuleNotFoundError" in error.message
    assert f"{folder}/lacking.py, line 1" in error.message


def test_a_module_that_raises_without_words_is_told_anyway(folder: Path) -> None:
    (folder / "mute.py").write_text("raise RuntimeError\n")

    assert refusal("mute:app").message.endswith(f"RuntimeError in {folder}/mute.py, line 1.")


def test_a_job_that_breaks_a_rule_says_so_itself(folder: Path) -> None:
    (folder / "unruly.py").write_text(
        "from mainspring import Mainspring\napp = Mainspring()\n@app.job(priority=77)\ndef job() -> None: ...\n"
    )

    assert refusal("unruly:app").code == "invalid-priority"


def test_a_module_that_is_not_there_is_not_found() -> None:
    assert refusal("not_here_at_all:app").code == "app-not-found"

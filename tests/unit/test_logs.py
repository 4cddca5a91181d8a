"""The log of our processes: from which level on, and what hostile text can do in it."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import sys
from typing import TYPE_CHECKING

import pytest
import structlog

from mainspring import Mainspring
from mainspring.app.logs import FORMAT_VARIABLE, LEVEL_VARIABLE, log_from, log_to_stderr
from mainspring.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

log = structlog.get_logger()


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for variable in (FORMAT_VARIABLE, LEVEL_VARIABLE):
        monkeypatch.setenv(variable, "")  # so that what is set here is forgotten
        monkeypatch.delenv(variable)
    yield
    structlog.reset_defaults()


def say_everything() -> None:
    for level in ("debug", "info", "warning", "error"):
        getattr(log, level)(f"it is {level}")


@pytest.mark.parametrize(("level", "count"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1), ("ERROR", 1)])
def test_lines_below_the_chosen_level_are_not_written(
    level: str, count: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LEVEL_VARIABLE, level)
    log_to_stderr(as_json=False)
    say_everything()

    assert len(capsys.readouterr().err.splitlines()) == count


@pytest.mark.parametrize("call", ["write", "flush"])
def test_a_line_that_cannot_be_written_is_not_worth_the_program(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(sys.stderr, call, fail)
    log_to_stderr(as_json=True)

    say_everything()


def test_the_level_is_info_unless_told_and_child_processes_inherit_it(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(as_json=True)
    assert os.environ[LEVEL_VARIABLE] == "info"
    log_from("warning")
    assert os.environ[LEVEL_VARIABLE] == "warning"
    log_to_stderr()
    say_everything()

    assert [json.loads(line)["level"] for line in capsys.readouterr().err.splitlines()] == ["warning", "error"]


def test_a_level_that_is_none_is_refused_with_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL_VARIABLE, "loud")

    with pytest.raises(InvalidInput, match="'loud'; it must be one of debug, info, warning, error") as caught:
        log_to_stderr()
    assert caught.value.code == "invalid-log-level"


@pytest.mark.parametrize("as_json", [True, False])
def test_hostile_text_begins_no_line_and_steers_no_terminal(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(as_json=as_json)
    log.warning("it failed", cause="\x1b[2J\r\n12:00:00 [info] all is well\u202e\x9b31m")

    (line,) = capsys.readouterr().err.splitlines()
    assert line.isprintable()


def test_tracebacks_keep_their_lines(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(as_json=False)
    try:
        raise ValueError("\x1b[2Jgone")
    except ValueError:
        log.exception("it failed")

    written = capsys.readouterr().err
    assert written.splitlines()[-1] == "ValueError: \\x1b[2Jgone"
    assert "\x1b" not in written


# ── inside other people's programs ──────────────────────────────────────────────────────────────────────────────


def test_in_a_program_of_somebody_else_lines_go_through_logging(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    structlog.reset_defaults()
    Mainspring("postgresql://nowhere")

    with caplog.at_level(logging.INFO):
        log.warning("an attempt failed", error="\x1b[2J", left=2)
        log.debug("nobody wants to know")

    assert [(each.name, each.levelname, each.getMessage()) for each in caplog.records] == [
        (__name__, "WARNING", r"an attempt failed error=\x1b[2J left=2")
    ]
    assert capfd.readouterr().out == ""


def test_a_program_that_has_configured_structlog_keeps_its_configuration() -> None:
    structlog.reset_defaults()
    structlog.configure(processors=[structlog.processors.JSONRenderer()])
    before = structlog.get_config()

    Mainspring("postgresql://nowhere")

    assert structlog.get_config() == before


def test_what_an_error_was_travels_with_the_line(caplog: pytest.LogCaptureFixture) -> None:
    structlog.reset_defaults()
    Mainspring("postgresql://nowhere")

    try:
        raise ValueError("no such order")
    except ValueError:
        log.exception("this went wrong")

    (record,) = caplog.records
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)

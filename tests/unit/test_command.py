"""Commands: which are taken, what a run may fill in, and that nothing ever goes through a shell."""

from __future__ import annotations

from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.errors import InvalidArguments, InvalidInput
from mainspring.model.command import Command
from mainspring.testing import inline


def filled(argv: list[str], **arguments: Any) -> list[str]:
    return Command.checked(argv).filled(arguments)


@pytest.mark.parametrize(
    ("argv", "arguments", "started"),
    [
        (["ls"], {}, ["ls"]),
        (["ls", ""], {}, ["ls", ""]),
        (
            ["cp", "{a}", "{b}"],
            {"a": "x y", "b": "$(reboot); `id` 'q' \"q\" \n"},
            ["cp", "x y", "$(reboot); `id` 'q' \"q\" \n"],
        ),
        (["pg_dump", "--file={path}.{day}"], {"path": "/b", "day": 7}, ["pg_dump", "--file=/b.7"]),
        (["awk", "{{print $1}}", "{file}"], {"file": "{name}"}, ["awk", "{print $1}", "{name}"]),
        (["echo", "{a}{a}"], {"a": "-"}, ["echo", "--"]),
    ],
)
def test_text_goes_into_its_own_argument_and_stays_there(argv: list[str], arguments: Any, started: list[str]) -> None:
    assert filled(argv, **arguments) == started


@pytest.mark.parametrize("argv", ["ls -l", b"ls", None, 7, {"ls"}, iter(["ls"])])
def test_a_command_is_a_list(argv: object) -> None:
    with pytest.raises(InvalidInput, match="there is no shell to split it") as refused:
        Command.checked(argv)

    assert refused.value.code == "invalid-argv"


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        ([], "must have 1 to 1,000 parts"),
        (["x"] * 1_001, "must have 1 to 1,000 parts"),
        (["ls", 7], "must be of strings"),
        (["ls", "a\0b"], "must be of strings"),
        (["ls", "\ud800"], "must be of strings"),
        (["ls", "x" * 40_000], "must be of strings"),
        ([""], "a run chooses arguments, not programs"),
        (["{program}"], "a run chooses arguments, not programs"),
        (["/bin/{program}"], "a run chooses arguments, not programs"),
        (["ls", "{"], "must have its braces in pairs"),
        (["ls", "}"], "must have its braces in pairs"),
        (["ls", "{}"], "must have plain names in braces"),
        (["ls", "{0}"], "must have plain names in braces"),
        (["ls", "{a.b}"], "must have plain names in braces"),
        (["ls", "{a[0]}"], "must have plain names in braces"),
        (["ls", "{a!r}"], "must have plain names in braces"),
        (["ls", "{a:>10}"], "must have plain names in braces"),
        (["ls", "{a b}"], "must have plain names in braces"),
    ],
)
def test_bad_commands_are_refused_when_they_are_defined(argv: list[Any], why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as refused:
        Command.checked(argv)

    assert refused.value.code == "invalid-argv"


@pytest.mark.parametrize("env", [["A"], {"A B": "x"}, {"": "x"}, {7: "x"}, {"A": 7}, {"A": "a\0b"}, {"A=": "x"}])
def test_bad_environments_are_refused(env: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        Command.checked(["ls"], env)

    assert refused.value.code == "invalid-env"


def test_a_refused_variable_is_named_without_its_value() -> None:
    with pytest.raises(InvalidInput) as refused:
        Command.checked(["ls"], {"PASSWORD": "hunter2\0"})

    assert "PASSWORD" in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("cwd", ["", 7, "a\0b", "x" * 5_000])
def test_bad_folders_are_refused(cwd: object) -> None:
    with pytest.raises(InvalidInput, match="must be the path of a folder"):
        Command.checked(["ls"], None, cwd)


# ── as jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def app() -> Mainspring:
    return Mainspring("postgresql://nowhere.invalid/none")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "path"),
        ({"path": "x", "other": "y"}, "other"),
        ({"path": ["x"]}, "path"),
        ({"path": None}, "path"),
        ({"path": 1.5}, "path"),
        ({"path": "x" * 9_000}, "path"),
        ({"path": "-rf"}, "path"),
        ({"path": "--checkpoint-action=exec=id"}, "path"),
        ({"path": -1}, "path"),
    ],
)
def test_what_a_run_fills_in_is_checked_when_it_is_submitted(app: Mainspring, arguments: Any, field: str) -> None:
    job = app.command("remove", ["rm", "{path}"])

    with pytest.raises(InvalidArguments) as refused:
        job.handler.arguments.encode((), arguments)
    assert refused.value.fields["field"] == field


@pytest.mark.parametrize("argv", [["rm", "--", "{path}"], ["rm", "--file={path}"]])
def test_what_cannot_be_taken_for_an_option_may_begin_with_a_dash(app: Mainspring, argv: list[str]) -> None:
    job = app.command("remove", argv)

    assert job.handler.arguments.encode((), {"path": "-rf"}) == b'{"path":"-rf"}'


def test_a_nul_in_what_a_run_fills_in_is_refused(app: Mainspring) -> None:
    with pytest.raises(InvalidInput) as refused:
        app.command("remove", ["rm", "{path}"]).handler.arguments.encode((), {"path": "a\0b"})

    assert refused.value.code == "payload-not-storable"


def test_a_command_is_isolated_and_known_by_what_it_starts(app: Mainspring) -> None:
    definition = app.command("backup", ["pg_dump", "{name}"], queue="nightly", memory="1GiB").handler.definition

    assert definition.isolated
    assert (definition.queue, definition.memory) == ("nightly", 2**30)
    assert definition.as_document()["command"] == ("pg_dump", "{name}")


async def test_inline_a_command_is_started_too(app: Mainspring, capfd: pytest.CaptureFixture[str]) -> None:
    say = app.command("say", ["echo", "{text}"])
    fail = app.command("fail", ["false"])
    with inline(app):
        handle, failed = await say.submit(text="a  b; id"), await fail.submit()

    assert await handle.result() == {"exit_code": 0}
    assert capfd.readouterr().out == "a  b; id\n"
    with pytest.raises(Exception, match="false ended with exit code 1"):
        await failed.result()

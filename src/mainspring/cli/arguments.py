"""New arguments for a run: given as options, or edited as JSON in the user's editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mainspring.cli.parsing import parse_payload
from mainspring.cli.text import as_json
from mainspring.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.app.mainspring import Mainspring


class NewArguments(NamedTuple):
    """Arguments for a run; and its revision, if they were made from those it had then."""

    arguments: dict[str, Any] | None = None
    revision: int | None = None


async def new_arguments(
    client: Mainspring,
    application: Mainspring | None,
    run_id: str,
    *,
    payload: str | None,
    pairs: Sequence[str],
    in_editor: bool,
) -> NewArguments:
    """The arguments to give to a run instead of its own, if any were given.

    Checked against the handler's signature if its application is at hand, else when it runs.
    """
    if payload is None and not pairs and not in_editor:
        return NewArguments()
    if in_editor and (payload is not None or pairs):
        raise InvalidInput(
            "Arguments were given, and are to be edited as well.",
            code="edit-and-arguments",
            hint="Give --edit, or --payload or --arg.",
            field="edit",
        )
    run = await client.runs.find(run_id)
    arguments = edited(run.payload) if in_editor else parse_payload(payload, pairs)
    if in_editor and arguments == run.payload:
        return NewArguments()  # looked at, and left as they were
    if pairs and isinstance(run.payload, dict):
        arguments = run.payload | arguments  # those that are not named stay
    revision = None if payload is not None else run.revision
    if application is not None:
        application.registry.find(run.job)  # raises if it is not one of its jobs
    return NewArguments(arguments, revision)


def edited(document: Any) -> dict[str, Any]:
    """What the user makes of a document in $VISUAL or $EDITOR."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _usual_editor()
    with tempfile.TemporaryDirectory(prefix="mainspring-") as folder:
        file = Path(folder) / "arguments.json"
        file.write_text(as_json(document) + "\n", encoding="utf-8")
        try:
            code = subprocess.call([*shlex.split(editor), str(file)], **_streams())
        except (OSError, ValueError) as error:
            raise _no_editor(editor, str(error)) from error
        if code != 0:
            raise _no_editor(editor, f"it exited with {code}")
        return parse_payload(file.read_text(encoding="utf-8", errors="surrogateescape"), ())


def _usual_editor() -> str:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput(
            "There is no terminal to edit the arguments in, and neither VISUAL nor EDITOR is set.",
            code="no-editor",
            hint="Say what to change by options, such as --arg or --payload; see --help.",
            field="edit",
        )
    return "vi"


def _streams() -> dict[str, Any]:
    """An editor neither waits for input that nobody types nor writes into our result."""
    stdin = None if sys.stdin.isatty() else subprocess.DEVNULL
    return {"stdin": stdin, "stdout": None if sys.stdout.isatty() else sys.stderr.fileno()}


def _no_editor(editor: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"Nothing was changed: the editor {editor!r} failed: {why}.",
        code="editor-failed",
        hint="Set EDITOR to one that works here, or give --payload or --arg.",
        field="editor",
    )

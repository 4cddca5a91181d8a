"""Under whose name PostgreSQL's programs run: it refuses to run as root, so root lends it an account that exists.

They run in an environment without our secrets.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mainspring.errors import EmbeddedServerError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PREFERRED_NAMES = ("postgres", "nobody")
NUMBER_OF_NOBODY = 65534
# PGDATA, PGPORT, PGOPTIONS … of the caller would steer our server; C makes every message readable by us.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
PRIVATE = 0o077


@dataclass(frozen=True, kw_only=True)
class Account:
    """A user and group; `switches` when it is not the one we run under."""

    uid: int
    gid: int
    switches: bool

    @property
    def name(self) -> str:
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return f"uid {self.uid}"


def account_for(*folders: Path) -> Account:
    """Ourselves; for root, the first owner of these folders who is not root, else a powerless account."""
    if os.geteuid() != 0:
        return Account(uid=os.geteuid(), gid=os.getegid(), switches=False)
    for folder in folders:
        if folder.is_dir() and (uid := folder.stat().st_uid) != 0:
            return Account(uid=uid, gid=_group_of(uid), switches=True)
    return _powerless_account()


def _group_of(uid: int) -> int:
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid


def _powerless_account() -> Account:
    for name in PREFERRED_NAMES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=entry.pw_uid, gid=entry.pw_gid, switches=True)
    return Account(uid=NUMBER_OF_NOBODY, gid=NUMBER_OF_NOBODY, switches=True)


def run_as(
    account: Account, arguments: Sequence[str | Path], *, text: str = "", keep_open: Sequence[int] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with `text` as its input. Its exit status is the caller's business."""
    return subprocess.run(
        arguments,
        input=text,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env=ENVIRONMENT,
        cwd="/",
        umask=PRIVATE,
        pass_fds=keep_open,
        user=account.uid if account.switches else None,
        group=account.gid if account.switches else None,
        extra_groups=[] if account.switches else None,
        check=False,
    )


def start_as(
    account: Account, arguments: Sequence[str | Path], *, output: int, keep_open: Sequence[int]
) -> subprocess.Popen[bytes]:
    """Start a program that goes on without us.

    In a session of its own: Ctrl-C goes to the whole foreground group, and the server must outlive the drain.
    """
    return subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=ENVIRONMENT,
        cwd="/",
        umask=PRIVATE,
        pass_fds=keep_open,
        start_new_session=True,
        user=account.uid if account.switches else None,
        group=account.gid if account.switches else None,
        extra_groups=[] if account.switches else None,
    )


def can_enter(account: Account, folder: Path) -> bool:
    """Whether the account may pass through a folder. Asked by trying: mode bits know nothing of ACLs."""
    try:
        return run_as(account, ["/bin/sh", "-c", 'cd -- "$1"', "sh", folder]).returncode == 0
    except OSError as error:
        raise EmbeddedServerError(
            f"PostgreSQL does not run as root, and this root may not run programs as {account.name}: {error.strerror}.",
            code="embedded-account-refused",
            hint="Run as an ordinary user, or give the container the capabilities SETUID and SETGID.",
            account=account.name,
        ) from error


def can_run(account: Account, program: Path) -> bool:
    """Whether the account may start a program and load its libraries."""
    try:
        return run_as(account, [program, "--version"]).returncode == 0
    except OSError:
        return False

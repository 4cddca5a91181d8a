"""Under whose name PostgreSQL runs. It refuses to run as root, so root lends it an account that exists."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PREFERRED_NAMES = ("postgres", "nobody")
NUMBER_OF_NOBODY = 65534


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

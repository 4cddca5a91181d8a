"""Under whose name the server of root runs."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

import pytest

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded import accounts
from mainspring.store.embedded.accounts import Account, account_for

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def known_users(monkeypatch: pytest.MonkeyPatch, **uids: int) -> None:
    def entry(name: str) -> pwd.struct_passwd:
        return pwd.struct_passwd((name, "x", uids[name], uids[name] + 1, "", "/", "/bin/false"))

    monkeypatch.setattr(pwd, "getpwnam", entry)


def test_an_ordinary_user_stays_who_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "getegid", lambda: 100)
    assert account_for() == Account(uid=1000, gid=100, switches=False)


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize(
    ("users", "uid", "gid"),
    [({"postgres": 70, "nobody": 99}, 70, 71), ({"nobody": 99}, 99, 100), ({}, 65534, 65534)],
)
def test_root_lends_an_account_without_power(
    monkeypatch: pytest.MonkeyPatch, users: dict[str, int], uid: int, gid: int
) -> None:
    known_users(monkeypatch, **users)
    assert account_for() == Account(uid=uid, gid=gid, switches=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_root_respects_who_owns_the_data(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 0)
    assert account_for(tmp_path / "missing", tmp_path) == Account(uid=12345, gid=12345, switches=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may take any account")
def test_an_account_we_may_not_take_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="may not run programs as") as caught:
        accounts.can_enter(Account(uid=1, gid=1, switches=True), tmp_path)
    assert caught.value.code == "embedded-account-refused"

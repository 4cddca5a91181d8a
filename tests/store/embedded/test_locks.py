"""The locks everything rests on."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from mainspring.errors import EmbeddedServerError
from mainspring.store.embedded.locks import FileLock

if TYPE_CHECKING:
    from pathlib import Path


def lock_on(file: Path) -> closing[FileLock]:
    return closing(FileLock(os.open(file, os.O_RDWR | os.O_CREAT)))


def test_two_handles_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    with lock_on(tmp_path / "lock") as first, lock_on(tmp_path / "lock") as second:
        assert first.try_exclusive()
        assert not second.try_exclusive()
        first.unlock()
        assert second.try_exclusive()


def test_all_who_share_keep_one_who_wants_it_alone_out(tmp_path: Path) -> None:
    with lock_on(tmp_path / "lock") as first, lock_on(tmp_path / "lock") as second:
        first.share()
        second.share()
        assert not first.try_exclusive()
        second.close()
        assert first.try_exclusive()


def test_a_lock_that_does_not_come_free_is_not_waited_for_forever(tmp_path: Path) -> None:
    with lock_on(tmp_path / "lock") as first, lock_on(tmp_path / "lock") as second:
        first.try_exclusive()
        with (
            pytest.raises(EmbeddedServerError, match="starting or stopping") as caught,
            second.held_exclusively(seconds=0.05),
        ):
            pass
    assert caught.value.code == "embedded-server-busy"


def test_a_descriptor_passed_on_keeps_the_lock(tmp_path: Path) -> None:
    """What makes server.lock free only when the last process of a server has ended."""
    with lock_on(tmp_path / "lock") as first, lock_on(tmp_path / "lock") as second:
        first.try_exclusive()
        heir = os.dup(first.descriptor)
        first.close()
        assert not second.try_exclusive()
        os.close(heir)
        assert second.try_exclusive()

"""What is published: the wheel and the source distribution, as our build backend makes them."""

from __future__ import annotations

import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hatchling.builders.sdist import SdistBuilder
from tests.system.environments import built_wheel

if TYPE_CHECKING:
    from email.message import Message

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


def test_the_wheel_brings_its_licence(wheel: Path, metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/licenses/LICENSE")]
        assert archive.read(name) == (ROOT / "LICENSE").read_bytes()


def test_the_wheel_brings_every_sql_statement(wheel: Path) -> None:
    package = ROOT / "src" / "mainspring"
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())

    assert not {f"mainspring/{path.relative_to(package)}" for path in package.rglob("*.sql")} - packed


def test_the_source_distribution_brings_the_licence(tmp_path: Path) -> None:
    (built,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])

    with tarfile.open(built) as archive:
        assert [name for name in archive.getnames() if name.count("/") == 1 and name.endswith("/LICENSE")]

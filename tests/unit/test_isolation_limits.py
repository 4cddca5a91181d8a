"""Limits of isolated runs, as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring.errors import InvalidInput
from mainspring.model.job import JobDefinition
from mainspring.model.limits import checked_cpu, checked_memory, readable_size


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("1MiB", 2**20),
        ("256MiB", 256 * 2**20),
        ("256 MiB", 256 * 2**20),
        ("256mib", 256 * 2**20),
        ("1.5GiB", 3 * 2**29),
        ("300MB", 300_000_000),
        ("2048KiB", 2**21),
        ("2GB", 2_000_000_000),
        (2**20, 2**20),
        ("16384GiB", 2**44),
        (None, None),
    ],
)
def test_memory_is_a_size_or_a_number_of_bytes(written: object, size: int | None) -> None:
    assert checked_memory(written) == size


@pytest.mark.parametrize(
    "written",
    [
        "",
        "256",
        "MiB",
        "256 M",
        "256 MiBs",
        "-1MiB",
        "1e9MiB",
        "1,5GiB",
        "١MiB",
        "1MiB\n",
        "9" * 30 + "B",
        True,
        2.5,
        b"1MiB",
    ],
)
def test_what_is_not_a_size_is_refused(written: object) -> None:
    with pytest.raises(InvalidInput, match='must be a size like "256MiB" or a number of bytes') as refused:
        checked_memory(written)

    assert refused.value.code == "invalid-memory"
    assert refused.value.fields["field"] == "memory"


@pytest.mark.parametrize("written", [0, -1, 2**20 - 1, 2**44 + 1, "1023KiB", "999999999999GiB"])
def test_memory_has_a_least_and_a_most(written: object) -> None:
    with pytest.raises(InvalidInput, match="must be from 1 MiB to 16384 GiB"):
        checked_memory(written)


@pytest.mark.parametrize(
    "cpu", [timedelta(0), timedelta(seconds=0.5), timedelta(days=31), timedelta(seconds=-1), 5, "5s"]
)
def test_processor_time_is_a_timedelta_within_bounds(cpu: object) -> None:
    with pytest.raises(InvalidInput, match="must be a timedelta, 1 second to 30 days") as refused:
        checked_cpu(cpu)

    assert refused.value.code == "invalid-cpu"


@pytest.mark.parametrize("limit", [{"memory": 2**20}, {"cpu": timedelta(seconds=1)}])
def test_limits_need_isolation(limit: dict[str, object]) -> None:
    JobDefinition(name="job", isolated=True, **limit)  # type: ignore[arg-type]

    with pytest.raises(InvalidInput, match=r"Add isolated=True\.") as refused:
        JobDefinition(name="job", **limit)  # type: ignore[arg-type]
    assert refused.value.code == "limit-without-isolation"


def test_isolated_is_true_or_false() -> None:
    with pytest.raises(InvalidInput, match="isolated is 'yes'; it must be True or False"):
        JobDefinition(name="job", isolated="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "text"), [(2**20, "1 MiB"), (3 * 2**29, "1.5 GiB"), (2_000, "1.953 KiB"), (7, "7 B")])
def test_sizes_are_shown_as_people_say_them(size: int, text: str) -> None:
    assert readable_size(size) == text

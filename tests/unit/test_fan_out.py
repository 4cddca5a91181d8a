"""The names of children: what an attempt calls them, another attempt finds."""

from __future__ import annotations

from uuid import UUID

import pytest

from mainspring.errors import IdempotencyConflict, InvalidInput
from mainspring.model import fan_out
from mainspring.model.fan_out import Children, FanOut, has_children, marked, name_in, prefix_of

RUN = UUID("01a1edd5-3c98-8003-b749-5855e8f3aef1")


@pytest.fixture
def children() -> Children:
    return Children(FanOut(run_id=RUN, lease_id=RUN, position=0, worker_id=RUN))


def names(children: Children, job: str = "part", name: str | None = None, count: int = 1) -> list[str]:
    with children.keys(job, name, count) as keys:
        assert all(key.startswith(prefix_of(RUN)) for key in keys)
        return [name_in(key) for key in keys]


def test_children_are_numbered_job_by_job_or_have_names(children: Children) -> None:
    assert names(children, count=2) == ["part#00001", "part#00002"]
    assert names(children, "other: job") == ["other: job#00001"]
    assert names(children, name="north: 1") == ["part=north: 1"]
    assert names(children) == ["part#00003"]
    assert names(children, count=0) == []


def test_numbers_whose_submission_failed_are_given_again_in_their_order(children: Children) -> None:
    for _ in range(2):
        with pytest.raises(ConnectionError), children.keys("part", None, 3):
            raise ConnectionError

    assert names(children) == ["part#00001"]
    assert names(children, count=4) == ["part#00002", "part#00003", "part#00004", "part#00005"]


def test_a_child_with_other_content_is_there_all_the_same(children: Children) -> None:
    with pytest.raises(IdempotencyConflict), children.keys("part", None, 1):
        raise IdempotencyConflict("other content")

    assert names(children) == ["part#00002"]


def test_the_same_name_again_is_no_further_child(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "MAX_CHILDREN", 2)
    names(children, name="one")
    names(children, name="one")
    names(children, name="two")

    with pytest.raises(InvalidInput) as caught:
        names(children, name="three")
    assert caught.value.code == "too-many-children"


def test_headers_say_who_has_children_and_whose_child_it_is() -> None:
    grandparent = UUID(int=7)
    of_child = fan_out.child_header(FanOut(run_id=RUN, lease_id=RUN, position=0, worker_id=RUN, above=(grandparent,)))

    assert not has_children('{"a":"b"}')
    assert has_children(marked('{"a":"b"}'))
    assert has_children(marked(None))
    assert fan_out.above(None) == ()
    assert fan_out.above(f'{{"@child_of":"{of_child["@child_of"]}"}}') == (RUN, grandparent)

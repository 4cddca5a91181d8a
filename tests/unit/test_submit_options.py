"""What a submission may say stands in three lists, because type checkers want each written out: they agree."""

from __future__ import annotations

import inspect
from dataclasses import fields

from mainspring.app.job import Job
from mainspring.model.options import SubmitKeywords, SubmitOptions, options_of


def parameters_of(function: object) -> dict[str, str]:
    listed = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return {each.name: each.annotation for each in listed if each.kind is each.KEYWORD_ONLY}


def test_the_three_lists_of_options_agree() -> None:
    taken = parameters_of(SubmitOptions.checked)
    assert taken
    assert SubmitKeywords.__annotations__.keys() == taken.keys()
    assert {
        name: getattr(hint, "__forward_arg__", hint) for name, hint in SubmitKeywords.__annotations__.items()
    } == taken
    offered = parameters_of(Job.options)
    assert offered.pop("connection")  # where to submit, not how
    assert offered.pop("tenant")  # for whom
    assert offered == taken


def test_what_can_be_given_is_what_options_keep() -> None:
    kept = {each.name for each in fields(SubmitOptions)}
    policies = {"retry", "timeout", "run_timeout"}  # kept as overrides
    conditions = {"on", "otherwise"}  # kept with each of those it waits for
    assert parameters_of(SubmitOptions.checked).keys() == (kept - {"overrides"}) | policies | conditions


def test_options_that_are_kept_are_read_as_they_were() -> None:
    """Also those that are nothing to Python: the most urgent priority is 0, and no labels are not the job's labels."""
    given = SubmitOptions.checked(priority=0, labels=(), tags=["a"], max_age=60, timeout=30)
    document = given.as_document()

    assert document["priority"] == 0
    assert options_of(document) == given
    assert SubmitOptions.checked().as_document() == {}

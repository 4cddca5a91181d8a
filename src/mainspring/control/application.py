"""The program that the services work for, as far as they have to know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mainspring.model.job import JobDefinition
    from mainspring.model.line import Line
    from mainspring.model.results import ReturnType


class Application(Protocol):
    """Which jobs a program defines, and how arguments are checked and results read. A registry of handlers is one."""

    @property
    def lines(self) -> Collection[Line]:
        """Every line that its jobs use."""

    def definition_of(self, job: str) -> JobDefinition | None:
        """What it says about a job, if it is one of its own."""

    def followers_of(self, job: str) -> Sequence[JobDefinition]:
        """Its jobs that follow this one (`after=…`), and those that follow them."""

    def encode(self, job: str, arguments: Mapping[str, Any]) -> bytes:
        """Arguments as a payload: checked against the handler if the job is its own, else when the run starts."""

    def returns_of(self, job: str) -> ReturnType:
        """How results of a job are read: as plain JSON values, if it is none of its own."""

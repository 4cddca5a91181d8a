"""The lines a worker serves: those of its queues whose labels it has. New ones appear while it lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mainspring.model.line import Line


class Lines:
    """By number. Lines come and never go."""

    def __init__(self, *, queues: Iterable[str], labels: Iterable[str]) -> None:
        self._queues = frozenset(queues)
        self._labels = frozenset(labels)
        self._served: dict[int, Line] = {}
        self._met: set[int] = set()  # also those that are not for us: there is no need to look at them again

    def learn(self, found: Mapping[Line, int]) -> None:
        """These are the lines there are."""
        self._met.update(found.values())
        for line, number in found.items():
            if line.is_served_by(self._queues, self._labels):
                self._served[number] = line

    def is_news(self, number: int) -> bool:
        """Whether this line was never heard of; asked twice about the same one, the second time it is no news."""
        if number in self._met:
            return False
        self._met.add(number)
        return True

    def __contains__(self, number: int) -> bool:
        return number in self._served

    def __iter__(self) -> Iterator[int]:
        return iter(self._served)

    def __getitem__(self, number: int) -> Line:
        return self._served[number]

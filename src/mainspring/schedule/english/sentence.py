"""A whole sentence: clauses joined by `and`, and the zone they are meant in."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from mainspring.errors import InvalidSchedule
from mainspring.schedule.english.checks import check
from mainspring.schedule.english.clause import Clause, read_parts
from mainspring.schedule.english.errors import not_understood, unclear
from mainspring.schedule.english.reader import Reader
from mainspring.schedule.zones import zone_named, zone_names

if TYPE_CHECKING:
    from datetime import date

MAX_LENGTH = 500
MAX_CLAUSES = 20


@lru_cache(maxsize=1)
def _zones_by_lower_case() -> dict[str, str]:
    return {name.lower(): name for name in zone_names()}


class Sentence:
    """What was read: the clauses whose union is meant, and the zone if one was named."""

    def __init__(self, text: str, today: date | None) -> None:
        self.reader = Reader(text)
        self.zone: str | None = None
        self.clauses = [self._clause(today)]
        while self._joins_another():
            self.clauses.append(self._clause(today))
        if not self.reader.is_at_end:
            raise not_understood(self.reader)

    def _clause(self, today: date | None) -> Clause:
        clause = Clause(begins=self.reader.token.at)
        read_parts(self.reader, clause, today)
        if self._read_zone():
            read_parts(self.reader, clause, today)
        if clause == Clause(begins=clause.begins) or not (
            self.reader.is_at_end or self.reader.is_next(("and", ";", ","))
        ):
            raise not_understood(self.reader)
        check(self.reader, clause)
        return clause

    def _joins_another(self) -> bool:
        comma = self.reader.word(",", ";", want="the end")
        joins = bool(self.reader.word("and", want="'and'") or comma)
        if joins and len(self.clauses) == MAX_CLAUSES:
            words = f"more than {MAX_CLAUSES} parts are joined by 'and'"
            raise unclear(self.reader.text, self.reader.token.at, words, "Write several schedules.", ())
        return joins

    def _read_zone(self) -> bool:
        """`in Europe/Berlin`, `Europe/Berlin time`, `UTC`."""
        reader = self.reader
        place = reader.place
        reader.skip(",")
        is_named = reader.word("in", want="'in' and a time zone") is not None
        name = reader.raw().rstrip(".,;")
        known = _zones_by_lower_case().get(name.lower())
        if known is None and not is_named and "/" not in name:
            reader.place = place
            return False
        if self.zone is not None or not name:
            raise not_understood(reader)
        self.zone = known or self._unknown(name)
        reader.skip_raw(name)
        reader.skip("time")
        return True

    def _unknown(self, name: str) -> str:
        try:
            return zone_named(name).key
        except InvalidSchedule as error:
            position = self.reader.token.at
            raise unclear(self.reader.text, position, f"'{name[:60]}' is no time zone", error.hint or "", ()) from error

"""When a schedule runs, from a text without settings: cron, intervals, instants, rules, plain English, or sets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mainspring.errors import InvalidSchedule
from mainspring.schedule.cron import MACROS, Cron
from mainspring.schedule.cron_eventbridge import BEGINS, read_eventbridge
from mainspring.schedule.cron_zones import IN_FRONT
from mainspring.schedule.faults import fault
from mainspring.schedule.instants import DATES, MAX_INSTANTS, Instants, read_datetime, read_instant
from mainspring.schedule.interval import Interval
from mainspring.schedule.offers import nothing_shown, show_offers
from mainspring.schedule.rule import Rule
from mainspring.schedule.sets import MAX_DEPTH, MAX_PARTS, Except, Union, When
from mainspring.schedule.slips import meant_by
from mainspring.schedule.timeline import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from mainspring.schedule.schedule import Schedule


_OPERATOR = re.compile(r"\s\|\s|\sbut not\s|\(|\)")
_INSTANT = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}")
_SPAN = re.compile(  # 0 H/2 * * * is none: what follows the slash is a step
    r"P[0-9T].*|(?:[0-9]+(?:\.[0-9]+)?\s*[a-z]+\s*)+(?:/(?![0-9]{1,3}[,\s]).*)?", re.IGNORECASE
)
_ENGLISH = re.compile(  # what begins with a digit and is English all the same: 1st of …, 24 december …, 9am …
    r"[0-9]{1,2}(?:st|nd|rd|th)\b|[0-9]{1,2}\s+(?:of\s+)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}\s+(?:at\b|noon\b|[0-9]{1,2}(?::[0-9]{2})?\s*[ap]\.?m\b)|[0-9]{1,2}(?:[:.][0-9]{2})?\s*[ap]\.?m\b"
    r"|[0-9]{1,2}[/.][0-9]{1,2}[/.][0-9]{4}\b|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?:\s|-|$)|12\s+(?:noon|midnight)\b"
    r"|[0-9]+\s+(?:times|(?:min(?:ute)?s?\s+)?(?:past|before|to))\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"[0-9]+\s+[a-z]{3,}\b", re.IGNORECASE)  # 2 weeks from now; no field of cron is such a word
_CRON = re.compile(r"[0-9*?]|H(?:[\s(/,]|$)", re.IGNORECASE)
_FORMS = "a cron expression, @daily, @every 90s, PT15M, 15m, 2026-12-24T18:00, RRULE:FREQ=…"
_OF_THE_WHOLE = "zones and bounds belong to the whole, not to a part of a set"


def read_when(
    text: str,
    zone: ZoneInfo,
    *,
    anchor: datetime | None = None,
    now: datetime | None = None,
    shown: Callable[[str], str | None] = nothing_shown,
) -> When | Schedule:
    """What a text without settings says. Plain English may name a zone and bounds; then it is a schedule.

    `shown` says of a text that might be offered instead how it is shown, settings and all; None if it is no good.
    """
    return _WhenReader(text, zone, anchor, now, shown).read()


class _WhenReader:
    def __init__(
        self,
        text: str,
        zone: ZoneInfo,
        anchor: datetime | None,
        now: datetime | None,
        shown: Callable[[str], str | None],
    ) -> None:
        self._text, self._zone, self._anchor, self._now, self._shown = text, zone, anchor, now, shown

    def read(self) -> When | Schedule:
        if not self._text.strip():
            raise fault(self._text, 0, "it is empty", allowed=_FORMS)
        if not re.search(r"\s\|\s|\sbut not\s|^\s*\(", self._text):
            return self._form(0, len(self._text))
        if self._text.count("|") >= MAX_PARTS or self._text.count(" but not ") > MAX_DEPTH:
            raise fault(self._text, 0, f"a union has at most {MAX_PARTS} parts", code="schedule-too-large")
        try:
            return self._set(0, len(self._text), 0)
        except InvalidSchedule as error:
            if error.code != "invalid-english" or re.search(r"[|()]", self._text):
                raise
            return self._exception(error)

    def _exception(self, error: InvalidSchedule) -> When | Schedule:
        """`every day but not on sundays at 9am`: one sentence, and not what is left of two schedules."""
        try:
            return self._english(self._text, 0, self._shown)
        except InvalidSchedule:
            raise error from None

    def _set(self, begin: int, end: int, depth: int) -> When:
        """`A | B`, `A but not B`, `(A)` or a single form; unions bind closer than exclusions."""
        if depth > 2 * MAX_DEPTH:
            raise fault(self._text, begin, f"sets are nested at most {MAX_DEPTH} deep", code="schedule-too-large")
        begin, end = self._stripped(begin, end)
        cuts = self._cuts(begin, end)
        without = [cut for cut in cuts if cut[2] == "but not"]
        if without:
            first, last, _ = without[-1]
            return Except(self._set(begin, first, depth + 1), self._set(last, end, depth + 1))
        if cuts:
            edges = [begin, *(edge for first, last, _ in cuts for edge in (first, last)), end]
            parts = [self._set(edges[at], edges[at + 1], depth + 1) for at in range(0, len(edges), 2)]
            return parts[0] if len({part.text for part in parts}) == 1 else Union(tuple(parts))
        if self._text[begin:end].startswith("(") and self._closing(begin, end) == end - 1:
            return self._set(begin + 1, end - 1, depth + 1)
        form = self._form(begin, end)
        if not isinstance(form, When):
            raise fault(self._text, begin, _OF_THE_WHOLE)
        return form

    def _cuts(self, begin: int, end: int) -> list[tuple[int, int, str]]:
        """Where operators outside of brackets stand: begin, end, operator."""
        cuts, open_brackets = [], 0
        for match in _OPERATOR.finditer(self._text, begin, end):
            operator = match.group().strip()
            if operator in "()":
                open_brackets += 1 if operator == "(" else -1
            elif open_brackets == 0:
                cuts.append((match.start(), match.end(), operator))
        if open_brackets:
            raise fault(self._text, begin, "brackets do not match")
        return cuts

    def _closing(self, begin: int, end: int) -> int:
        open_brackets = 0
        for at in range(begin, end):
            open_brackets += {"(": 1, ")": -1}.get(self._text[at], 0)
            if open_brackets == 0:
                return at
        return -1

    def _stripped(self, begin: int, end: int) -> tuple[int, int]:
        piece = self._text[begin:end]
        return begin + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))

    def _form(self, begin: int, end: int) -> When | Schedule:
        begin, end = self._stripped(begin, end)

        def shown(offer: str) -> str | None:
            return self._shown(self._text[:begin] + offer + self._text[end:])

        try:
            return self._read_form(self._text[begin:end], begin, shown)
        except InvalidSchedule as error:
            show_offers(error, shown)
            raise

    def _read_form(self, text: str, begin: int, shown: Callable[[str], str | None]) -> When | Schedule:
        """One form. What its readers offer is instead of `text`; `shown` puts it into the whole."""
        if IN_FRONT.match(text):
            raise fault(self._text, begin, _OF_THE_WHOLE, allowed="TZ=… in front of the whole, or zone=… behind it")
        if text.startswith("@"):
            return self._macro(text, begin)
        if BEGINS.match(text):
            return read_eventbridge(text, self._zone, self._anchor)
        if text[:8].upper().startswith(("RRULE", "DTSTART", "RDATE", "EXDATE", "FREQ=")):
            return Rule.parse(text)
        if _ENGLISH.match(text):
            return self._english(text, begin, shown)
        if _INSTANT.match(text):
            return self._instants(text)
        if _SPAN.fullmatch(text):
            return self._interval(text, begin)
        if _CRON.match(text) and not _COUNTED.match(text):
            return Cron.parse(text)
        return self._english(text, begin, shown)

    def _macro(self, text: str, begin: int) -> When:
        name, _, rest = text.partition(" ")
        if name.lower() == "@every":
            return self._interval(rest, begin + len(name) + 1)
        if text.lower() not in MACROS:
            meant = meant_by(name.lower(), [*MACROS, "@every"])
            allowed = ", ".join([*MACROS, "@every 90s"])
            offers = [f"{meant} {rest}".strip()] if meant else []
            raise fault(self._text, begin, f"{name[:30]!r} is not known", allowed=allowed, offers=offers)
        return Cron.parse(text)

    def _interval(self, text: str, begin: int) -> Interval:
        span, slash, anchor_text = text.partition("/")
        anchor = self._anchor
        if slash:
            anchor = read_datetime(anchor_text)
            if anchor is None:
                raise fault(self._text, begin + len(span) + 1, "the anchor is no date and time", allowed=DATES)
        return Interval.every(span, anchor)

    def _instants(self, text: str) -> Instants:
        if text.count(",") >= MAX_INSTANTS:
            raise fault(text, 0, f"at most {MAX_INSTANTS:,} instants are allowed", code="schedule-too-large")
        found, at = [], 0
        for piece in text.split(","):
            found.append(read_instant(text, at, piece, self._zone))
            at += len(piece) + 1
        return Instants(tuple(found))

    def _english(self, text: str, begin: int, shown: Callable[[str], str | None]) -> When | Schedule:
        if not text[:1].isalnum() or not text[:1].isascii():
            raise fault(self._text, begin, f"{text[:1]!r} cannot begin a schedule", allowed=_FORMS)
        from mainspring.schedule.english.sentence import read  # large tables, which most schedules do without

        now = self._now
        if now is not None and not EARLIEST <= now < LATEST:
            now = None  # nothing can be counted from there; what is not counted from now needs none
        return read(text, zone=self._zone, now=now, shown=shown)

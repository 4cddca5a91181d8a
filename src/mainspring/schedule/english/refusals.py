"""Why a sentence is refused, and what to write instead.

The grammar raises a `Refusal` with what it would offer. What is shown is decided in one place, `as_error`: the offers
that are understood themselves, and of those that have a fault of their own, what is offered for that.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from mainspring.schedule.english.holidays import DATED, REMEDY, holiday_in
from mainspring.schedule.english.vocabulary import EVERYTHING, FORMS
from mainspring.schedule.faults import fault
from mainspring.schedule.slips import meant_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mainspring.errors import InvalidSchedule
    from mainspring.schedule.english.clause import Clause
    from mainspring.schedule.english.reader import Reader, Rewrite

MAX_OFFERED = 4
MAX_TRIED = 16  # offers that are read, however many there would be
LONGEST_OFFER = 200
LETTERS = {"mwf": "mon/wed/fri", "tth": "tue/thu", "m": "mon", "w": "wed", "f": "fri"}  # T and S are two days each
MAX_RESPELLED = 5  # words; a text with more of them is not one with typing errors


class Refusal(Exception):
    """Something was understood, and may mean two things or nothing.

    `rewrites` are this sentence with another part, and mean what may have been meant; `sets` are such rewrites that are
    more than one sentence, so that only those who read whole texts know them; `examples` are other sentences
    that show the form. They are shown where there is no rewrite, or `beside` them, if they show another reading.
    """

    def __init__(
        self,
        text: str,
        position: int,
        problem: str,
        *,
        remedy: str = "",
        rewrites: Sequence[Rewrite] = (),
        sets: Sequence[Rewrite] = (),
        examples: Sequence[str] = (),
        beside: bool = False,
        allowed: str = "",
        is_beyond_years: bool = False,
    ) -> None:
        super().__init__(problem)
        self.sets, self.beside = tuple(sets), beside
        self.is_beyond_years = is_beyond_years
        self.text, self.position, self.problem, self.remedy = text, position, problem, remedy
        self.rewrites, self.examples, self.allowed = tuple(rewrites), tuple(examples), allowed

    def as_error(
        self, refusal_of: Callable[[str], Refusal | None], shown: Callable[[str], str | None]
    ) -> InvalidSchedule:
        """The error for people. `refusal_of` says why a sentence would be refused, if it would.

        `shown` puts a rewrite into the text that the sentence is a part of, and knows whether that is any good.
        """
        offers = [*_Offers(refusal_of).good(self.rewrites), *self.sets]
        written = list(filter(None, map(shown, offers)))
        examples = [] if written and not self.beside else _Offers(refusal_of).good(self.examples)
        hints = (
            self.remedy,
            f"Write {_either(written)}." if written else "",
            f"Allowed here: {self.allowed}." if self.allowed else "",
            f"For example: {_either(examples)}." if examples else "",
        )
        hint = " ".join(filter(None, hints)) or "Describe it as a cron expression."
        if self.is_beyond_years:
            return fault(self.text, self.position, self.problem, code="invalid-instant", hint=hint)
        return fault(
            self.text,
            self.position,
            self.problem,
            allowed=self.allowed,
            suggestion=written[0] if written else "",
            code="invalid-english",
            hint=hint,
        )


class _Offers:
    """Reads what might be offered, up to a number of tries."""

    def __init__(self, refusal_of: Callable[[str], Refusal | None]) -> None:
        self._refusal_of, self._tries = refusal_of, MAX_TRIED

    def good(self, offers: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(self._good(offers)))[:MAX_OFFERED]

    def _good(self, offers: Sequence[str]) -> Iterator[str]:
        for offer in offers:
            if self._tries == 0 or len(offer) > LONGEST_OFFER:
                return
            self._tries -= 1
            refusal = self._refusal_of(offer)
            if refusal is None:
                yield offer
            else:
                yield from self._good(refusal.rewrites)


def refused_clause(
    reader: Reader,
    clause: Clause,
    problem: str,
    *,
    remedy: str = "",
    rewrites: Sequence[Rewrite] = (),
    examples: Sequence[str] = (),
    beside: bool = False,
) -> Refusal:
    return Refusal(
        reader.text, clause.begins, problem, remedy=remedy, rewrites=rewrites, examples=examples, beside=beside
    )


def needs_now(text: str, position: int) -> Refusal:
    """It is counted from now, and nobody said what time that is."""
    words = "it is counted from now, and what time that is was not said"
    examples = ("every day at 09:00", "on 2026-12-24 at 18:00")
    return Refusal(text, position, words, remedy="Give the instant that now is.", examples=examples)


def not_understood(reader: Reader) -> Refusal:
    """Nothing that is known could stand here: what could, the text with its words spelled right, and like forms."""
    named = holiday_in(reader)
    if named is not None:
        return Refusal(reader.text, named.at, "which day that is is not known", remedy=REMEDY, examples=DATED)
    token = reader.tokens[reader.furthest]
    problem = f"'{token.text}' is not understood here" if token.kind != "end" else "it ends too early"
    return Refusal(
        reader.text,
        token.at,
        problem,
        rewrites=_respelled(reader),
        examples=nearest_forms(reader.text),
        allowed=_alternatives(reader.wanted[:6]),
    )


def _respelled(reader: Reader) -> list[Rewrite]:
    """The text with the words that are slips of known ones spelled right, if there are such words."""
    unknown = [token for token in reader.tokens if token.kind == "word" and token.text not in EVERYTHING]
    meant = [(token, LETTERS.get(token.text) or meant_by(token.text, EVERYTHING)) for token in unknown[:MAX_RESPELLED]]
    edits = [(token, token, word) for token, word in meant if word]
    return [reader.edited(*edits)] if edits else []


def nearest_forms(text: str, count: int = 3) -> list[str]:
    """The known forms that look most like this text."""
    lowered = text[:200].lower()
    return difflib.get_close_matches(lowered, FORMS, n=count, cutoff=0.35) or list(FORMS[2 : 2 + count])


def _either(forms: Sequence[str]) -> str:
    return _alternatives([f"'{form}'" for form in forms])


def _alternatives(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}" if words else ""

"""A place in the text, what could have stood there, and the way back when a reading does not work out.

The grammar is read by functions that take a `Reader` and answer with what they read, or None, having moved nowhere.
Whatever was tried and not found is remembered for the furthest place reached: that is where an error points,
and where it says what could stand there instead.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from mainspring.schedule.english.vocabulary import EVERYTHING, FORMS
from mainspring.schedule.faults import fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mainspring.errors import InvalidSchedule

Kind = Literal["date", "time", "ordinal", "number", "word", "mark", "end"]

_TOKEN = re.compile(
    r"""(?P<date>\d{4}-\d\d?-\d\d?(?!\d))
    | (?P<time>\d\d?:\d\d(?::\d\d)?(?!\d))
    | (?P<ordinal>\d\d?(?:st|nd|rd|th)\b)
    | (?P<number>\d+)
    | (?P<word>[ap]\.m\.|[^\W\d_]+)
    | (?P<mark>\S)""",
    re.VERBOSE | re.IGNORECASE,
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str  # in lower case
    at: int


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text, and one that stands for its end."""
    found = [
        Token(_kind(match), match[0].lower().replace(".m.", "m"), match.start())
        for match in _TOKEN.finditer(text)
        if not (match[0] == "." and text[match.end() :].strip() == "")  # a sentence may end with a full stop
    ]
    return [*found, Token("end", "", len(text))]


def _kind(match: re.Match[str]) -> Kind:
    kind: Kind = match.lastgroup  # type: ignore[assignment]  # the groups are named after the kinds
    return kind


class Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.place = 0
        self.furthest = 0
        self.wanted: list[str] = []

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    @property
    def is_at_end(self) -> bool:
        return self.token.kind == "end"

    def want(self, what: str) -> None:
        """Remember that this could have stood here."""
        if self.place > self.furthest:
            self.furthest, self.wanted = self.place, []
        if self.place == self.furthest and what not in self.wanted:
            self.wanted.append(what)

    def attempt(self, read: Callable[[Reader], T | None]) -> T | None:
        """What `read` reads, or None and nothing has moved."""
        place = self.place
        answer = read(self)
        if answer is None:
            self.place = place
        return answer

    def word(self, *words: str, want: str | None = None) -> str | None:
        """The next word, if it is one of these."""
        if self.token.text in words and self.token.kind != "end":
            return self._next().text
        self.want(want or f"'{words[0]}'")
        return None

    def skip(self, *words: str) -> bool:
        """Leave out the next word if it is one of these, which add nothing."""
        if self.token.text not in words or self.is_at_end:
            return False
        self.place += 1
        return True

    def words(self, *words: str) -> bool:
        """These words, one after the other; or none of them."""
        found = [token.text for token in self.tokens[self.place : self.place + len(words)]]
        if found != list(words):
            return False
        self.place += len(words)
        return True

    def one_of(self, known: Mapping[str, T], want: str) -> T | None:
        """What the next word stands for."""
        if self.token.kind == "word" and self.token.text in known:
            return known[self._next().text]
        self.want(want)
        return None

    def kind(self, kind: Kind, want: str) -> Token | None:
        if self.token.kind == kind:
            return self._next()
        self.want(want)
        return None

    def is_next(self, words: Iterable[str]) -> bool:
        return self.token.text in words

    def raw(self) -> str:
        """What stands here up to the next space, as it was written."""
        begin = self.token.at
        rest = self.text[begin:]
        return rest.split(maxsplit=1)[0] if rest.strip() else ""

    def skip_raw(self, raw: str) -> None:
        end = self.token.at + len(raw)
        while self.token.kind != "end" and self.token.at < end:
            self.place += 1

    def _next(self) -> Token:
        token = self.token
        self.place += 1
        return token


def listed(reader: Reader, read: Callable[[Reader], T | None]) -> list[T] | None:
    """One or more, as in `a`, `a and b`, `a, b and c`. A comma or an `and` before something else is left alone."""
    first = reader.attempt(read)
    if first is None:
        return None
    found = [first]
    while (another := reader.attempt(lambda reader: _joined(reader, read))) is not None:
        found.append(another)
    return found


def _joined(reader: Reader, read: Callable[[Reader], T | None]) -> T | None:
    comma = reader.skip(",")
    if not reader.word("and", "&") and not comma:
        return None
    return read(reader)


def unclear(text: str, position: int, problem: str, remedy: str, forms: Sequence[str]) -> InvalidSchedule:
    """Something was understood, and may mean two things or nothing."""
    offered = " or ".join(f"'{form}'" for form in forms)
    return _refused(text, position, problem, f"{remedy} {offered}".strip(), suggestion=forms[0] if forms else "")


def needs_now(text: str, position: int) -> InvalidSchedule:
    """It is counted from now, and nobody said what time that is."""
    words = "it is counted from now, and what time that is was not said"
    forms = ("every day at 09:00", "on 2026-12-24 at 18:00")
    return unclear(text, position, words, "Give the instant, or write", forms)


def not_understood(reader: Reader) -> InvalidSchedule:
    """Nothing that is known could stand here: what could, and the forms that look most like the text."""
    token = reader.tokens[reader.furthest]
    problem = f"'{token.text}' is not understood here" if token.kind != "end" else "it ends too early"
    allowed, forms = _either(reader.wanted[:6]), nearest_forms(reader.text)
    hint = f"{_spelling(token)}Allowed here: {allowed}. Forms like yours: {', '.join(map(repr, forms))}."
    return _refused(reader.text, token.at, problem, hint, suggestion=forms[0], allowed=allowed)


def _refused(
    text: str, position: int, problem: str, hint: str, *, suggestion: str, allowed: str = ""
) -> InvalidSchedule:
    return fault(text, position, problem, allowed=allowed, suggestion=suggestion, code="invalid-english", hint=hint)


def _spelling(token: Token) -> str:
    if token.kind != "word" or token.text in EVERYTHING:
        return ""
    near = difflib.get_close_matches(token.text[:20], EVERYTHING, n=1, cutoff=0.7)
    return f"Did you mean '{near[0]}'? " if near else ""


def nearest_forms(text: str, count: int = 3) -> list[str]:
    """The known forms that look most like this text."""
    lowered = text[:200].lower()
    return difflib.get_close_matches(lowered, FORMS, n=count, cutoff=0.35) or list(FORMS[2 : 2 + count])


def _either(wanted: list[str]) -> str:
    return wanted[0] if len(wanted) == 1 else f"{', '.join(wanted[:-1])} or {wanted[-1]}" if wanted else ""

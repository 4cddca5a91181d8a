"""A place in the text, what could have stood there, and the way back when a reading does not work out.

The grammar is read by functions that take a `Reader` and answer with what they read, or None, having moved nowhere.
Whatever was tried and not found is remembered for the furthest place reached: that is where an error points,
and where it says what could stand there instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NewType, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

TokenKind = Literal["date", "time", "ordinal", "decimal", "number", "word", "mark", "end"]

_TOKEN = re.compile(
    r"""(?P<date>\d{4}-\d\d?-\d\d?(?!\d))
    | (?P<time>\d\d?:\d\d(?::\d\d)?(?!\d)|\d\d?\.\d\d(?=\s*[ap]\.?m\b))
    | (?P<ordinal>\d\d?(?:st|nd|rd|th)\b)
    | (?P<decimal>(?<![\d.])\d+\.\d+(?![\d.])|\d*[¼½¾])
    | (?P<number>\d{1,3}(?:,\d{3})+(?![\d,])|\d+)
    | (?P<word>[ap]\.m\.|(?:bi|semi)-[a-z]+|o['’]clock\b|[^\W\d_]+)
    | (?P<mark>\.\.|\S)""",
    re.VERBOSE | re.IGNORECASE,
)
T = TypeVar("T")
Rewrite = NewType("Rewrite", str)  # a text with other words in one place, and all the rest as it was written


@dataclass(frozen=True, slots=True)
class Token:
    kind: TokenKind
    text: str  # in lower case
    at: int
    end: int
    place: int  # among the tokens of the text


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text, and one that stands for its end."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        if match[0] == "." and text[match.end() :].strip() == "":
            continue  # a sentence may end with a full stop
        if found and match[0].lower() in ("o'clock", "o’clock"):
            found[-1] = replace(found[-1], end=match.end())
            continue
        found.append(Token(_kind(match), _written(match), match.start(), match.end(), len(found)))
    return [*found, Token("end", "", len(text), len(text), len(found))]


def _written(match: re.Match[str]) -> str:
    """One spelling for each word: `a.m.` is am, `bi-weekly` is biweekly, `9.30` before am is 9:30, `1,000` is 1000."""
    word = match[0].lower()
    if _kind(match) == "decimal":
        return word
    if word[:1].isdigit():
        return word.replace(".", ":").replace(",", "")
    return word.replace(".m.", "m").replace("-", "") if len(word) > 1 else word


def _kind(match: re.Match[str]) -> TokenKind:
    kind: TokenKind = match.lastgroup  # type: ignore[assignment]  # the groups are named after the kinds
    return kind


class Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.place = 0
        self.furthest = 0
        self.wanted: list[str] = []

    def after(self, steps: int) -> Token:
        """The token so many places further on, or the end."""
        return self.tokens[min(self.place + steps, len(self.tokens) - 1)]

    def replaced(self, first: Token, last: Token, words: str) -> Rewrite:
        """The text with other words in place of these tokens and all between them."""
        return Rewrite(self.text[: first.at] + words + self.text[last.end :])

    def edited(self, *edits: tuple[Token, Token, str]) -> Rewrite:
        """The text with other words in several places."""
        text = self.text
        for first, last, words in sorted(edits, key=lambda edit: edit[0].at, reverse=True):
            text = text[: first.at] + words + text[last.end :]
        return Rewrite(text)

    def inserted(self, at: int, words: str) -> Rewrite:
        """The text with words inserted, spaces around them."""
        return Rewrite(f"{self.text[:at].rstrip()} {words} {self.text[at:].lstrip()}".strip())

    def without(self, first: Token, last: Token) -> Rewrite:
        """The text without these tokens and all between them."""
        before, after = self.text[: first.at].rstrip(), self.text[last.end :].lstrip()
        return Rewrite(f"{before.rstrip(',;') if after[:1] in ',;' or not after else before} {after}".strip())

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

    def kind(self, kind: TokenKind, want: str) -> Token | None:
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


def listed(
    reader: Reader, read: Callable[[Reader], T | None], *, marks: tuple[str, ...] = (",",), loose: bool = False
) -> list[T] | None:
    """One or more, as in `a`, `a and b`, `a or b`, `a, b and c`; `a b c` if that is `loose`.

    A mark or an `and` before something else is left alone. Of what recurs, `mondays or fridays` are both;
    where one of several would be chosen, the sentence refuses `or`.
    """
    first = reader.attempt(read)
    if first is None:
        return None
    found = [first]
    while (another := reader.attempt(lambda reader: _joined(reader, read, marks, loose=loose))) is not None:
        found.append(another)
    return found


def _joined(reader: Reader, read: Callable[[Reader], T | None], marks: tuple[str, ...], *, loose: bool) -> T | None:
    mark = reader.skip(*marks)
    if not reader.word("and", "&", "or") and not mark and not loose:
        return None
    return read(reader)

"""Words that name no time: `around 9am`, `during business hours`, `starting now`. They are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.schedule.english.refusals import Refusal
from mainspring.schedule.english.times import NAMED
from mainspring.schedule.english.vocabulary import AMBIGUOUS

if TYPE_CHECKING:
    from mainspring.schedule.english.reader import Reader

ABOUT = ("around", "about", "approximately", "roughly", "circa", "~")
SOMEWHERE = ("by", "before", "after")  # on one side of a time
HOURS = {
    "business": "from 9am to 5pm",
    "working": "from 9am to 5pm",
    "work": "from 9am to 5pm",
    "office": "from 9am to 5pm",
    "opening": "from 9am to 5pm",
    "day": "from 8am to 6pm",
    "daytime": "from 8am to 6pm",
    "night": "from 8pm to 6am",
}


def refuse_vague(reader: Reader) -> None:
    _refuse_ambiguous(reader)
    _refuse_about(reader)
    _refuse_hours(reader)
    _refuse_now(reader)


def _refuse_ambiguous(reader: Reader) -> None:
    token = reader.token
    if token.kind == "word" and token.text in AMBIGUOUS:
        found = AMBIGUOUS[token.text]
        rewrites = [reader.replaced(token, token, each) for each in found.instead]
        words = f"'{token.text}' means {found.meaning}"
        raise Refusal(reader.text, token.at, words, rewrites=rewrites, examples=found.examples, beside=True)


def _refuse_about(reader: Reader) -> None:
    """`around 9am`, `by noon`, `until 5pm`."""
    token, following, after = reader.token, reader.after(1), reader.after(2)
    is_time = following.kind == "time" or following.text in NAMED or after.text in ("am", "pm")
    if token.text in ("until", "till", "til") and is_time:
        words = f"'{token.text}' and a time may be on one day or on every day"
        rewrites = [reader.replaced(token, token, each) for each in ("from 00:00 to", "until before today at")]
        raise Refusal(reader.text, token.at, words, rewrites=rewrites)
    if token.text in (*ABOUT, *SOMEWHERE) and is_time:
        words = f"'{token.text}' and a time is no time in particular"
        rewrites = [reader.replaced(token, token, "at")] if token.text in ABOUT else []
        examples = ("every day at 09:00", "every 15 minutes between 8am and 6pm")
        raise Refusal(reader.text, token.at, words, rewrites=rewrites, examples=examples)


def _refuse_hours(reader: Reader) -> None:
    """`during business hours`, `during the day`."""
    token = reader.token
    if token.text not in ("during", "in", "within"):
        return
    step = 2 if reader.after(1).text == "the" else 1
    name = reader.after(step)
    last = reader.after(step + 1) if reader.after(step + 1).text == "hours" else name
    if name.text not in HOURS or (last is name and token.text != "during"):
        return
    words = f"'{reader.text[token.at : last.end]}' does not say from when to when"
    rewrites = [reader.replaced(token, last, f"{HOURS[name.text]}{days}") for days in (" on weekdays", "")]
    if last is name:
        rewrites = rewrites[1:]
    raise Refusal(reader.text, token.at, words, rewrites=rewrites)


def _refuse_now(reader: Reader) -> None:
    """`starting now`, `from now on`."""
    token = reader.token
    if token.text not in ("starting", "beginning", "from") or reader.after(1).text not in ("now", "immediately"):
        return
    last = reader.after(2) if reader.after(2).text == "on" else reader.after(1)
    rewrites = [reader.without(token, last)]
    words = "a schedule begins as soon as it is there, at its first time after that"
    raise Refusal(reader.text, token.at, words, rewrites=rewrites)

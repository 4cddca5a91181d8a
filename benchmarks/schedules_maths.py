"""Schedule maths: what the next instant costs when nobody asked before, and in a herd that shares expressions.

Cold means: the schedule is known, the answer is not. Each expression is asked about instants it was never asked about,
in several zones; the segments of those zones are known, as in a process that has run for a moment.
"""

from __future__ import annotations

import statistics
import time
from datetime import UTC, datetime, timedelta

from benchmarks.harness import Numbers, bar
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.text import parse

FIELDS = ("next_us_p50", "next_us_p99", "amortised_us", "parse_us_p50")
EXPRESSIONS = (
    "*/5 * * * *",
    "0 * * * *",
    "30 2 * * *",
    "0 9 * * 1-5",
    "0 0 1 * *",
    "0 18 * * 5L",
    "0 0 L * *",
    "15 3 * * 0",
)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe")
HERD, TICKS = 20_000, 5
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


async def run(seconds: float) -> Numbers:
    cold = sorted(_cold(seconds))
    parsing = sorted(_parsing())
    return {
        "next_us_p50": statistics.median(cold),
        "next_us_p99": cold[len(cold) * 99 // 100],
        "amortised_us": _amortised(),
        "parse_us_p50": statistics.median(parsing),
    }


def _cold(seconds: float) -> list[float]:
    schedules = [parse(text, zone=zone) for text in EXPRESSIONS for zone in ZONES]
    for schedule in schedules:
        for hours in range(0, 9_000, 500):
            schedule.next_after(BEGIN + timedelta(hours=hours))
    spans, until, number = [], time.perf_counter() + seconds, 0
    while time.perf_counter() < until and number < 60_000:
        number += 1
        schedule, instant = schedules[number % len(schedules)], BEGIN + timedelta(seconds=517 * number + 1)
        began = time.perf_counter_ns()
        schedule.next_after(instant)
        spans.append((time.perf_counter_ns() - began) / 1000)
    return spans


def _amortised() -> float:
    """A herd of schedules, each a value of its own, with a few expressions: what a tick of all costs, for each."""
    herd = [
        Schedule(when=parse(EXPRESSIONS[number % len(EXPRESSIONS)]).when, zone=ZONES[number % len(ZONES)])
        for number in range(HERD)
    ]
    for schedule in herd:
        schedule.next_after(BEGIN)  # as a scheduler does when it loads them
    instants = [BEGIN + timedelta(days=40, minutes=minute) for minute in range(TICKS)]
    began = time.perf_counter()
    for instant in instants:
        for schedule in herd:
            schedule.next_after(instant)
    return (time.perf_counter() - began) / (HERD * TICKS) * 1e6


def _parsing() -> list[float]:
    spans = []
    for number in range(3_000):
        text = f"{number % 60} {number % 24} {1 + number // 60 % 28} {1 + number // 1680}-12 *"  # each is new
        began = time.perf_counter_ns()
        parse(f"{text} zone=Europe/Berlin")
        spans.append((time.perf_counter_ns() - began) / 1000)
    return spans


def show(numbers: Numbers) -> str:
    most = max(numbers.values())
    return "\n".join(bar(name.replace("_us", "").replace("_", " "), numbers[name], most, "µs") for name in FIELDS)

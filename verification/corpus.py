"""The expressions that are compared. Those in FIRST are compared in the tests too."""

from __future__ import annotations

FIRST = ("30 2 * * *", "0 0 * * *", "15,45 1-3 * * *", "30 */2 * * *", "0 * * * *", "5 4 * * 0")
MORE = (
    "*/15 * * * *",
    "0 2,3 * * *",
    "0,30 0-4 * * *",
    "59 23 * * *",
    "0 1 * * *",
    "7 1 * * *",
    "0 3 1 * *",
    "0 12 * * 1-5",
    "*/20 0-3 * * *",
    "10 */3 * * *",
    "0 0 1,15 * *",
    "0 0 * * 6,0",
    "45 23 28-31 * *",
    "1 0 1 1,4,7,10 *",
)
ALL = FIRST + MORE

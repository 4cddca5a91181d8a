"""When things are due: pure functions from a schedule and an instant to instants. No I/O, no clock, no database.

Three kinds of value meet here:

- An *instant* is a point in time: an aware `datetime` in UTC.
- A *wall* is what a clock on the wall shows: a naive `datetime`. It names no instant, one, or two.
- A *zone* is a list of *segments*, stretches with one offset from UTC. Where two of them meet the wall clock jumps:
  forward (a *gap*: walls that never come) or back (a *repeat*: walls that come twice).

Cron expressions, calendar intervals and recurrence rules are *patterns* over walls (`next_wall`, `prev_wall`).
`walls.py` lays a pattern over the segments of a zone, by the policies for gaps and repeats; the result is a *timeline*
of instants (`next_after`, `prev_before`). Elapsed intervals and lists of instants are timelines by themselves; unions,
exclusions and calendars combine timelines into timelines. A schedule is a timeline with bounds and a spread.
"""

"""English as people write it who come from other tools: the next instants of each, on a clock in Berlin."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mainspring.errors import InvalidSchedule
from mainspring.schedule.text import parse
from mainspring.schedule.zones import wall_of

NOW = datetime(2026, 11, 16, 3, 7, 42, tzinfo=UTC)  # a Monday, 04:07 in Berlin


def next_three(text: str) -> str:
    schedule = parse(text, zone="Europe/Berlin", now=NOW)
    found: list[str] = []
    at = NOW
    while len(found) < 3:
        following = schedule.next_after(at)
        if following is None:
            return ", ".join([*found, "never"])
        at = following.nominal_at
        found.append(f"{wall_of(schedule.zone_info, at):%y-%m-%d %H:%M:%S}".removesuffix(":00"))
    return ", ".join(found)


INSTANTS = [
    ("every 5m", "26-11-16 04:10, 26-11-16 04:15, 26-11-16 04:20"),
    ("every 30s", "26-11-16 04:08, 26-11-16 04:08:30, 26-11-16 04:09"),
    ("every 2h", "26-11-16 06:00, 26-11-16 08:00, 26-11-16 10:00"),
    ("every 1d at 09:00", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("every 1h30m", "26-11-16 05:37, 26-11-16 07:07, 26-11-16 08:37"),
    ("every 1 hour 30 minutes", "26-11-16 05:37, 26-11-16 07:07, 26-11-16 08:37"),
    ("every 1 hour and 30 minutes", "26-11-16 05:37, 26-11-16 07:07, 26-11-16 08:37"),
    ("every hour and a half", "26-11-16 05:37, 26-11-16 07:07, 26-11-16 08:37"),
    ("every 2 and a half hours", "26-11-16 06:37, 26-11-16 09:07, 26-11-16 11:37"),
    ("every 1.5 hours", "26-11-16 05:37, 26-11-16 07:07, 26-11-16 08:37"),
    ("every 1½ hours", "26-11-16 05:37, 26-11-16 07:07, 26-11-16 08:37"),
    ("every 1h and a half", "26-11-16 05:37, 26-11-16 07:07, 26-11-16 08:37"),
    ("every 2.5 minutes", "26-11-16 04:09:30, 26-11-16 04:12, 26-11-16 04:14:30"),
    ("every 0.5 hours", "26-11-16 04:30, 26-11-16 05:00, 26-11-16 05:30"),
    ("every half minute", "26-11-16 04:08, 26-11-16 04:08:30, 26-11-16 04:09"),
    ("every 2.5 hours between 9am and 5pm on weekdays", "26-11-16 09:00, 26-11-16 11:30, 26-11-16 14:00"),
    ("every thirty minutes", "26-11-16 04:30, 26-11-16 05:00, 26-11-16 05:30"),
    ("every twenty minutes", "26-11-16 04:20, 26-11-16 04:40, 26-11-16 05:00"),
    ("every forty-five minutes", "26-11-16 04:52, 26-11-16 05:37, 26-11-16 06:22"),
    ("every sixty seconds", "26-11-16 04:08, 26-11-16 04:09, 26-11-16 04:10"),
    ("minutely", "26-11-16 04:08, 26-11-16 04:09, 26-11-16 04:10"),
    ("half-hourly", "26-11-16 04:30, 26-11-16 05:00, 26-11-16 05:30"),
    ("every half-hour", "26-11-16 04:30, 26-11-16 05:00, 26-11-16 05:30"),
    ("every quarter of an hour", "26-11-16 04:15, 26-11-16 04:30, 26-11-16 04:45"),
    ("once an hour", "26-11-16 05:00, 26-11-16 06:00, 26-11-16 07:00"),
    ("once every hour", "26-11-16 05:00, 26-11-16 06:00, 26-11-16 07:00"),
    ("once per hour", "26-11-16 05:00, 26-11-16 06:00, 26-11-16 07:00"),
    ("every hour at half past", "26-11-16 04:30, 26-11-16 05:30, 26-11-16 06:30"),
    ("every hour at quarter past", "26-11-16 04:15, 26-11-16 05:15, 26-11-16 06:15"),
    ("every hour at minute 15", "26-11-16 04:15, 26-11-16 05:15, 26-11-16 06:15"),
    ("hourly at 30 past", "26-11-16 04:30, 26-11-16 05:30, 26-11-16 06:30"),
    ("5 minutes past every hour", "26-11-16 05:05, 26-11-16 06:05, 26-11-16 07:05"),
    ("every hour on the half hour", "26-11-16 04:30, 26-11-16 05:30, 26-11-16 06:30"),
    ("every 5 mins from 10:00 to 14:00", "26-11-16 10:00, 26-11-16 10:05, 26-11-16 10:10"),
    ("every 5 minutes 10:00-14:00", "26-11-16 10:00, 26-11-16 10:05, 26-11-16 10:10"),
    ("every hour, 9am to 5pm, monday to friday", "26-11-16 09:00, 26-11-16 10:00, 26-11-16 11:00"),
    ("every 6 hours from 02:00", "26-11-16 08:00, 26-11-16 14:00, 26-11-16 20:00"),
    ("every 4 hours starting at 02:00", "26-11-16 06:00, 26-11-16 10:00, 26-11-16 14:00"),
    ("every hour at 15 minutes past the hour from 10pm to 2am", "26-11-16 22:15, 26-11-16 23:15, 26-11-17 00:15"),
    ("every hour at :45 between 08:55 and 17:50", "26-11-16 09:45, 26-11-16 10:45, 26-11-16 11:45"),
    ("everyday at 09:00", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("every single day at 9am", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("once a day at 09:00", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("once per day at 9am", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("every day 00:00", "26-11-17 00:00, 26-11-18 00:00, 26-11-19 00:00"),
    ("9am every day", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("09:00 daily", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("noon every day", "26-11-16 12:00, 26-11-17 12:00, 26-11-18 12:00"),
    ("every noon", "26-11-16 12:00, 26-11-17 12:00, 26-11-18 12:00"),
    ("every midnight", "26-11-17 00:00, 26-11-18 00:00, 26-11-19 00:00"),
    ("every day at 12 midnight", "26-11-17 00:00, 26-11-18 00:00, 26-11-19 00:00"),
    ("every day at 12:00 noon", "26-11-16 12:00, 26-11-17 12:00, 26-11-18 12:00"),
    ("every day at nine am", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("every day at 9.30am", "26-11-16 09:30, 26-11-17 09:30, 26-11-18 09:30"),
    ("at 8 in the morning every day", "26-11-16 08:00, 26-11-17 08:00, 26-11-18 08:00"),
    ("every day at 8 in the evening", "26-11-16 20:00, 26-11-17 20:00, 26-11-18 20:00"),
    ("every night at 2am", "26-11-17 02:00, 26-11-18 02:00, 26-11-19 02:00"),
    ("nightly at 2am", "26-11-17 02:00, 26-11-18 02:00, 26-11-19 02:00"),
    ("every morning at 8am", "26-11-16 08:00, 26-11-17 08:00, 26-11-18 08:00"),
    ("mornings at 8am", "26-11-16 08:00, 26-11-17 08:00, 26-11-18 08:00"),
    ("every evening at 6pm", "26-11-16 18:00, 26-11-17 18:00, 26-11-18 18:00"),
    ("every friday night at 10pm", "26-11-20 22:00, 26-11-27 22:00, 26-12-04 22:00"),
    ("monday mornings at 9am", "26-11-16 09:00, 26-11-23 09:00, 26-11-30 09:00"),
    ("twice a day at 9am and 5pm", "26-11-16 09:00, 26-11-16 17:00, 26-11-17 09:00"),
    ("twice daily at 9am and 5pm", "26-11-16 09:00, 26-11-16 17:00, 26-11-17 09:00"),
    ("3 times a day at 8am, noon and 6pm", "26-11-16 08:00, 26-11-16 12:00, 26-11-16 18:00"),
    ("twice a week on monday and thursday at 9am", "26-11-16 09:00, 26-11-19 09:00, 26-11-23 09:00"),
    ("once a week on monday at 9am", "26-11-16 09:00, 26-11-23 09:00, 26-11-30 09:00"),
    ("every monday 09:00", "26-11-16 09:00, 26-11-23 09:00, 26-11-30 09:00"),
    ("every week monday 9am", "26-11-16 09:00, 26-11-23 09:00, 26-11-30 09:00"),
    ("Mon-Fri 09:00", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("Mon..Fri 09:00", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("At 09:00, Monday through Friday", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("every mon/wed/fri at 9am", "26-11-16 09:00, 26-11-18 09:00, 26-11-20 09:00"),
    ("every mon wed fri at 9am", "26-11-16 09:00, 26-11-18 09:00, 26-11-20 09:00"),
    ("tuesdays or thursdays at 9am", "26-11-17 09:00, 26-11-19 09:00, 26-11-24 09:00"),
    ("on mondays or fridays at 9am", "26-11-16 09:00, 26-11-20 09:00, 26-11-23 09:00"),
    ("every mon, wed or fri at 9am or 5pm", "26-11-16 09:00, 26-11-16 17:00, 26-11-18 09:00"),
    ("the 1st or 15th of the month at 9am", "26-12-01 09:00, 26-12-15 09:00, 27-01-01 09:00"),
    ("every monday at 9am or every friday at 5pm", "26-11-16 09:00, 26-11-20 17:00, 26-11-23 09:00"),
    ("every weds at 9am", "26-11-18 09:00, 26-11-25 09:00, 26-12-02 09:00"),
    ("from monday to thursday at 09:00", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("every business day at 09:00", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("business days at 9am", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("every working day at 9am", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("workdays 9am", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("every day but sunday at 9am", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("every day except for sundays at 9am", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("every fortnight on monday at 9am", "26-11-16 09:00, 26-11-30 09:00, 26-12-14 09:00"),
    ("alternate mondays at 9am", "26-11-16 09:00, 26-11-30 09:00, 26-12-14 09:00"),
    ("2nd wednesday of month 09:00", "26-12-09 09:00, 27-01-13 09:00, 27-02-10 09:00"),
    ("every second tuesday of the month at 09:00", "26-12-08 09:00, 27-01-12 09:00, 27-02-09 09:00"),
    ("1st,third monday of month 04:00", "26-12-07 04:00, 26-12-21 04:00, 27-01-04 04:00"),
    ("every 2nd,third mon,wed of march 17:00", "27-03-08 17:00, 27-03-10 17:00, 27-03-15 17:00"),
    ("every monday of month 09:00", "26-11-16 09:00, 26-11-23 09:00, 26-11-30 09:00"),
    ("every wed of december 00:00", "26-12-02 00:00, 26-12-09 00:00, 26-12-16 00:00"),
    ("every day of jan 04:00", "27-01-01 04:00, 27-01-02 04:00, 27-01-03 04:00"),
    ("first of the month at 09:00", "26-12-01 09:00, 27-01-01 09:00, 27-02-01 09:00"),
    ("once a month on the 1st at 9am", "26-12-01 09:00, 27-01-01 09:00, 27-02-01 09:00"),
    ("start of the month at 09:00", "26-12-01 09:00, 27-01-01 09:00, 27-02-01 09:00"),
    ("end of month at 18:00", "26-11-30 18:00, 26-12-31 18:00, 27-01-31 18:00"),
    ("penultimate day of the month at 9am", "26-11-29 09:00, 26-12-30 09:00, 27-01-30 09:00"),
    ("2nd to last day of the month at 9am", "26-11-29 09:00, 26-12-30 09:00, 27-01-30 09:00"),
    ("last business day of the month at 18:00", "26-11-30 18:00, 26-12-31 18:00, 27-01-29 18:00"),
    ("on the 15th through 17th of the month at 09:00", "26-11-16 09:00, 26-11-17 09:00, 26-12-15 09:00"),
    ("once a year on 1 january at 09:00", "27-01-01 09:00, 28-01-01 09:00, 29-01-01 09:00"),
    ("first day of the quarter at 9am", "27-01-01 09:00, 27-04-01 09:00, 27-07-01 09:00"),
    ("last day of the quarter at 18:00", "26-12-31 18:00, 27-03-31 18:00, 27-06-30 18:00"),
    ("quarterly on the last day at 18:00", "26-12-31 18:00, 27-03-31 18:00, 27-06-30 18:00"),
    ("quarterly on the 30th at 18:00", "27-01-30 18:00, 27-04-30 18:00, 27-07-30 18:00"),
    ("quarterly on the 1st and last day at 9am", "26-12-31 09:00, 27-01-01 09:00, 27-03-31 09:00"),
    ("every quarter on the last friday at 18:00", "26-12-25 18:00, 27-03-26 18:00, 27-06-25 18:00"),
    ("first monday of every quarter at 9am", "27-01-04 09:00, 27-04-05 09:00, 27-07-05 09:00"),
    ("every weekday at 9am until 2026-11-17", "26-11-16 09:00, 26-11-17 09:00, never"),
    ("every weekday at 9am until 18 november", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("every weekday at 9am before 2026-11-18", "26-11-16 09:00, 26-11-17 09:00, never"),
    ("every weekday at 9am from 2026-12-01", "26-12-01 09:00, 26-12-02 09:00, 26-12-03 09:00"),
    ("every weekday at 9am from 2026-12-01 to 2026-12-02", "26-12-01 09:00, 26-12-02 09:00, never"),
    ("every weekday at 9am between 2026-12-01 and 2026-12-02", "26-12-01 09:00, 26-12-02 09:00, never"),
    ("every weekday at 9am, 2 times", "26-11-16 09:00, 26-11-17 09:00, never"),
    ("every hour, 2 times", "26-11-16 05:00, 26-11-16 06:00, never"),
    ("every day at 9am at most 2 times", "26-11-16 09:00, 26-11-17 09:00, never"),
    ("daily at 9am for 2 days", "26-11-16 09:00, 26-11-17 09:00, never"),
    ("every hour, for 2 hours", "26-11-16 05:00, 26-11-16 06:00, never"),
    ("every 10 minutes for 1.5 hours", "26-11-16 04:10, 26-11-16 04:20, 26-11-16 04:30"),
    ("for the next 2 weeks every monday at 9am", "26-11-16 09:00, 26-11-23 09:00, never"),
    ("daily at 9am over the next 2 days", "26-11-16 09:00, 26-11-17 09:00, never"),
    ("every other tuesday at noon for 4 weeks", "26-11-17 12:00, 26-12-01 12:00, never"),
    ("every 10 minutes for half an hour starting 2027-01-01 08:00", "27-01-01 08:00, 27-01-01 08:10, 27-01-01 08:20"),
    (
        "every other day at 9am counted from 2026-11-02 from 2026-12-01",
        "26-12-02 09:00, 26-12-04 09:00, 26-12-06 09:00",
    ),
    ("in 1.5 hours", "26-11-16 05:37:42, never"),
    ("in 5m", "26-11-16 04:12:42, never"),
    ("in 2 hours and 30 minutes", "26-11-16 06:37:42, never"),
]
MORE_INSTANTS = [
    # of the clock
    ("every weekday morning at 8", "26-11-16 08:00, 26-11-17 08:00, 26-11-18 08:00"),
    ("every evening at half past 8", "26-11-16 20:30, 26-11-17 20:30, 26-11-18 20:30"),
    ("every day at half past 9 am", "26-11-16 09:30, 26-11-17 09:30, 26-11-18 09:30"),
    ("every day at a quarter to 9 am", "26-11-16 08:45, 26-11-17 08:45, 26-11-18 08:45"),
    ("every day at ten past eight pm", "26-11-16 20:10, 26-11-17 20:10, 26-11-18 20:10"),
    ("every day at ten to five pm", "26-11-16 16:50, 26-11-17 16:50, 26-11-18 16:50"),
    ("every hour from quarter to 9 am to 5pm", "26-11-16 08:45, 26-11-16 09:45, 26-11-16 10:45"),
    ("every hour from 10 minutes to 9am to 5pm", "26-11-16 08:50, 26-11-16 09:50, 26-11-16 10:50"),
    ("every hour from 10 past 9 am to 5pm", "26-11-16 09:10, 26-11-16 10:10, 26-11-16 11:10"),
    ("every hour from 3pm to ten to five pm", "26-11-16 15:00, 26-11-16 16:00, 26-11-17 15:00"),
    ("every hour at quarter to", "26-11-16 04:45, 26-11-16 05:45, 26-11-16 06:45"),
    ("10 minutes before every hour", "26-11-16 04:50, 26-11-16 05:50, 26-11-16 06:50"),
    ("5 past every hour", "26-11-16 05:05, 26-11-16 06:05, 26-11-16 07:05"),
    ("at minute 30 past every hour", "26-11-16 04:30, 26-11-16 05:30, 26-11-16 06:30"),
    ("every hour on :30", "26-11-16 04:30, 26-11-16 05:30, 26-11-16 06:30"),
    ("every hour on :15 and :45", "26-11-16 04:15, 26-11-16 04:45, 26-11-16 05:15"),
    ("twice an hour at :00 and :30", "26-11-16 04:30, 26-11-16 05:00, 26-11-16 05:30"),
    # steps, and where they begin
    ("every 15 minutes starting 2027-01-01 08:07", "27-01-01 08:07, 27-01-01 08:22, 27-01-01 08:37"),
    ("every 15 minutes from 2027-01-01 08:07 on", "27-01-01 08:15, 27-01-01 08:30, 27-01-01 08:45"),
    ("every 15 minutes from 2027-01-01 08:07", "27-01-01 08:15, 27-01-01 08:30, 27-01-01 08:45"),
    ("every 4 hours from 2029-01-01 02:00", "29-01-01 04:00, 29-01-01 08:00, 29-01-01 12:00"),
    ("every 4 hours starting from 2029-01-01 02:00", "29-01-01 02:00, 29-01-01 06:00, 29-01-01 10:00"),
    ("every 15 minutes counted from 2027-01-01 08:07", "26-11-16 04:22, 26-11-16 04:37, 26-11-16 04:52"),
    ("every 4 hours on weekdays starting 2027-01-01 02:00", "27-01-01 02:00, 27-01-01 06:00, 27-01-01 10:00"),
    ("every hour starting tomorrow at 8:30", "26-11-17 08:30, 26-11-17 09:30, 26-11-17 10:30"),
    ("every 30 seconds starting 2027-01-01 08:00:10", "27-01-01 08:00:10, 27-01-01 08:00:40, 27-01-01 08:01:10"),
    ("every 5 minutes offset by 2 minutes", "26-11-16 04:12, 26-11-16 04:17, 26-11-16 04:22"),
    ("every 6 hours with an offset of 90 minutes", "26-11-16 07:30, 26-11-16 13:30, 26-11-16 19:30"),
    ("every 6 hours offset by 2 hours and 15 minutes", "26-11-16 08:15, 26-11-16 14:15, 26-11-16 20:15"),
    ("every 20 minutes, 24/7", "26-11-16 04:20, 26-11-16 04:40, 26-11-16 05:00"),
    ("every hour around the clock", "26-11-16 05:00, 26-11-16 06:00, 26-11-16 07:00"),
    ("every minute of every hour", "26-11-16 04:08, 26-11-16 04:09, 26-11-16 04:10"),
    # days
    ("at 10:30 on every day", "26-11-16 10:30, 26-11-17 10:30, 26-11-18 10:30"),
    ("every week day at 9am", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("at the end of every month at 6pm", "26-11-30 18:00, 26-12-31 18:00, 27-01-31 18:00"),
    ("every day from june to august at 9am", "27-06-01 09:00, 27-06-02 09:00, 27-06-03 09:00"),
    ("every day at 9am but not on sundays", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("every day but not on mondays at 9am", "26-11-17 09:00, 26-11-18 09:00, 26-11-19 09:00"),
    ("first and last day of the month at 9am", "26-11-30 09:00, 26-12-01 09:00, 26-12-31 09:00"),
    ("1st, 15th and last day of the month at 9am", "26-11-30 09:00, 26-12-01 09:00, 26-12-15 09:00"),
    ("first and last weekday of the month at 9am", "26-11-30 09:00, 26-12-01 09:00, 26-12-31 09:00"),
    ("once a quarter on the 1st at 9am", "27-01-01 09:00, 27-04-01 09:00, 27-07-01 09:00"),
    ("7 days a week at 9am", "26-11-16 09:00, 26-11-17 09:00, 26-11-18 09:00"),
    ("every day at 9am and at 5pm", "26-11-16 09:00, 26-11-16 17:00, 26-11-17 09:00"),
    ("every 8 hours starting 6am", "26-11-16 06:00, 26-11-16 14:00, 26-11-16 22:00"),
    ("every monday at 9am and friday at 10am", "26-11-16 09:00, 26-11-20 10:00, 26-11-23 09:00"),
    ("every day at 9am except on 2026-11-17", "26-11-16 09:00, 26-11-18 09:00, 26-11-19 09:00"),
    ("every day at 9am and 5:30pm except 16 november", "26-11-17 09:00, 26-11-17 17:30, 26-11-18 09:00"),
    ("every hour except on 2026-11-16", "26-11-17 00:00, 26-11-17 01:00, 26-11-17 02:00"),
    ("every second except on 2026-11-16", "26-11-17 00:00, 26-11-17 00:00:01, 26-11-17 00:00:02"),
    ("every 7 seconds except 16 november", "26-11-17 00:00:02, 26-11-17 00:00:09, 26-11-17 00:00:16"),
    ("every other tuesday at noon except on 2026-11-17", "26-12-01 12:00, 26-12-15 12:00, 26-12-29 12:00"),
    # once
    ("2 weeks from now at 9am", "26-11-30 09:00, never"),
    ("15 minutes from now", "26-11-16 04:22:42, never"),
    ("tonight at 8pm", "26-11-16 20:00, never"),
    ("this evening at 8", "26-11-16 20:00, never"),
    ("tomorrow morning at 8", "26-11-17 08:00, never"),
    ("in one month at 9am", "26-12-16 09:00, never"),
    ("in 2 years at 9am", "28-11-16 09:00, never"),
    ("2026-12-24 6pm", "26-12-24 18:00, never"),
]
SENTENCES = [text for text, _ in (*INSTANTS, *MORE_INSTANTS)]


@pytest.mark.parametrize(("text", "instants"), [*INSTANTS, *MORE_INSTANTS])
def test_a_sentence_is_due_at(text: str, instants: str) -> None:
    assert next_three(text) == instants


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("from monday to thursday at 09:00", "0 9 * * 1-4"),
        ("every day but sunday at 9am", "0 9 * * 1-6"),
        ("every hour, 9am to 5pm, monday to friday", "0 9-17 * * 1-5"),
        ("every 6 hours from 02:00 on mondays", "0 2-20/6 * * 1"),
        ("every hour at 15 minutes past the hour from 10pm to 2am", "15 0,1,22,23 * * *"),
        ("every hour at :45 between 08:55 and 17:50", "45 9-17 * * *"),
        ("every hour at :00 between 09:00 and 17:00", "0 9-17 * * *"),
        ("quarterly on the last weekday at 18:00", "0 18 LW 3-12/3 *"),
        ("quarterly on the first monday and last friday at 09:00", "0 9 * 1-10/3 1#1 | 0 9 * 3-12/3 5L"),
    ],
)
def test_a_sentence_is_all_of(text: str, canonical: str) -> None:
    assert parse(text, now=NOW).when.text == canonical


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("every friday the 13th at 9am", "26-11-13, 27-08-13, 28-10-13, 29-04-13, 29-07-13"),
        ("every friday the 13th of october at 9am", "28-10-13, 34-10-13"),
        ("monthly on friday the 13th at 9am", "26-11-13, 27-08-13, 28-10-13, 29-04-13, 29-07-13"),
    ],
)
def test_a_weekday_with_its_number_is_both(text: str, days: str) -> None:
    found = parse(text).between(datetime(2026, 11, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC))

    assert [f"{at.nominal_at:%y-%m-%d}" for at in found][: days.count(",") + 1] == days.split(", ")


def test_the_last_day_of_a_quarter_is_that_of_its_last_month() -> None:
    found = parse("quarterly on the last day at 18:00").between(
        datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
    )

    assert [(at.nominal_at.month, at.nominal_at.day) for at in found] == [(3, 31), (6, 30), (9, 30), (12, 31)]


def test_until_a_day_includes_the_day() -> None:
    until = parse("every hour until 1 march", now=NOW)
    assert until.ends_at == datetime(2027, 3, 2, tzinfo=UTC), "the next 1 March"
    assert parse("every hour until 16 november", now=NOW).ends_at == datetime(2026, 11, 17, tzinfo=UTC), "today"
    assert parse("every hour before 2027-03-01", now=NOW).ends_at == datetime(2027, 3, 1, tzinfo=UTC)
    before = parse("every hour until before 1 March 2027 at 09:00", now=NOW)
    assert before.ends_at == datetime(2027, 3, 1, 9, tzinfo=UTC)


def test_bounds_are_those_of_the_whole() -> None:
    found = parse("every weekday at 09:00 and every sunday at 11:00 starting 2027-01-01, 10 times", now=NOW)

    assert (found.starts_at, found.max_runs) == (datetime(2027, 1, 1, tzinfo=UTC), 10)
    with pytest.raises(InvalidSchedule, match="as a whole"):
        parse("every weekday at 09:00 starting 2027-01-01 and every sunday at 11:00", now=NOW)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("every day at 10am and tomorrow at 9am, 5 times", "tomorrow at 9am and every day at 10am, 5 times"),
        ("every day at 10am and tomorrow at 9am for 10 days", "tomorrow at 9am and every day at 10am for 10 days"),
        ("every day at 10am and in 15 minutes for 10 days", "in 15 minutes and every day at 10am for 10 days"),
        ("tomorrow at 9am and 2026-12-24 at 10am, 2 times", "2026-12-24 at 10am and tomorrow at 9am, 2 times"),
    ],
)
def test_a_bound_of_the_whole_is_understood_after_parts_in_any_order(one: str, other: str) -> None:
    assert parse(one, now=NOW) == parse(other, now=NOW)


def test_so_many_times_are_counted_from_now() -> None:
    assert parse("every hour, 10 times", now=NOW).starts_at == NOW
    with pytest.raises(InvalidSchedule, match="counted from now"):
        parse("every hour, 10 times")


def test_so_long_is_counted_from_now_or_from_where_it_starts() -> None:
    found = parse("every hour for 10 days", now=NOW)
    assert (found.starts_at, found.ends_at) == (NOW, datetime(2026, 11, 26, 3, 7, 42, tzinfo=UTC))
    found = parse("every other day at 9am starting 2027-01-01 for 10 days")
    assert (found.starts_at, found.ends_at) == (
        datetime(2027, 1, 1, tzinfo=UTC),
        datetime(2027, 1, 11, tzinfo=UTC),
    )
    with pytest.raises(InvalidSchedule, match="counted from now"):
        parse("every hour for 10 days")


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("every hour starting 2027-03-27 for 2 days", datetime(2027, 3, 28, 22, tzinfo=UTC)),  # one of 23 hours
        ("every hour starting 2027-03-27 for 48 hours", datetime(2027, 3, 28, 23, tzinfo=UTC)),
        ("every hour starting 2027-01-31 for a month", datetime(2027, 2, 27, 23, tzinfo=UTC)),
        ("every hour starting 2028-02-29 for 1 year", datetime(2029, 2, 27, 23, tzinfo=UTC)),
        ("every hour starting 2027-01-01 for a fortnight", datetime(2027, 1, 14, 23, tzinfo=UTC)),
    ],
)
def test_days_and_months_end_at_the_time_of_day_at_which_they_began(text: str, ends: datetime) -> None:
    assert parse(text, zone="Europe/Berlin").ends_at == ends


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("in 1 year at 9am", datetime(2029, 2, 28, 9, tzinfo=UTC)),
        ("in 4 years at 9am", datetime(2032, 2, 29, 9, tzinfo=UTC)),
        ("in 10 months at 9am", datetime(2028, 12, 29, 9, tzinfo=UTC)),
    ],
)
def test_months_after_a_leap_day_are_on_the_same_day_or_on_the_last_one(text: str, day: datetime) -> None:
    now = datetime(2028, 2, 29, 3, tzinfo=UTC)
    found = parse(text, now=now).next_after(now)
    assert found is not None
    assert found.nominal_at == day


def test_so_many_times_by_twos_are_counted_from_where_it_starts() -> None:
    found = parse("every other tuesday at noon starting 2027-01-01, 5 times")

    assert (found.starts_at, found.max_runs) == (datetime(2027, 1, 1, tzinfo=UTC), 5)


def test_steps_that_begin_elsewhere_go_on_through_a_jump_of_the_clock() -> None:
    found = parse("every 15 minutes starting 2027-03-27 00:07", zone="Europe/Berlin").between(
        datetime(2027, 3, 28, 0, tzinfo=UTC), datetime(2027, 3, 28, 3, tzinfo=UTC)
    )

    assert [at.nominal_at.minute for at in found] == [7, 22, 37, 52] * 3


def test_but_not_between_two_schedules_is_still_a_set() -> None:
    assert parse("every day at 9am but not monthly on the 1st at 9am").when.text == "0 9 * * * but not 0 9 1 * *"
    with pytest.raises(InvalidSchedule, match="'foo' is not understood"):
        parse("every day at 9am but not on foo")

"""Plain English, read by a grammar: `every weekday at 09:00`, `last friday of the month at 18:00`, `tomorrow at 3pm`.

    sentence  = clause { ( "and" | "or" ) clause } [ "in" zone ] [ bounds ]
    clause    = parts in any order, each at most once:
                how often    every 15 minutes · every 1.5 hours · every other day · hourly · twice a day …
                times        at 09:00 and 5:30pm · noon · at 8 in the morning · at 15 minutes past the hour
                window       between 8am and 6pm · from 8am to before 6pm
                days         weekdays · mondays or fridays · the 15th of the month · the last friday of the month
                one day      tomorrow · 2026-12-24 · in 3 days · in 15 minutes · 2 weeks from now
                months       in june and july
                exception    except sundays · except in august · except 25 december · except on 2026-12-25
    bounds    = starting 2027-01-01 · until 1 march · from 2027-01-01 to 2027-03-01 · for 10 days · 10 times

Nothing is guessed. A sentence that leaves something open (`every day`: at what time?) or that means two things to two
people (`biweekly`, `next friday`, `at 9`, `9am EST`) is refused, with the ways to say it: `refusals.py` shows only
those that are understood. A way to say it is the sentence with other words in one place (`Rewrite`), so that nothing
else of it is lost; a sentence of our own is an example.
"""

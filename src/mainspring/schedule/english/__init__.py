"""Plain English, read by a grammar: `every weekday at 09:00`, `last friday of the month at 18:00`, `tomorrow at 3pm`.

    sentence  = clause { "and" clause } [ "in" zone ]
    clause    = parts in any order, each at most once:
                how often    every 15 minutes · every other day · hourly · monthly · every 2 weeks …
                times        at 09:00 and 5:30pm · at noon · at 15 minutes past the hour
                window       between 8am and 6pm · from 8am to before 6pm
                days         weekdays · mondays and fridays · the 15th of the month · the last friday of the month
                one day      tomorrow · 2026-12-24 · in 3 days · in 15 minutes
                months       in june and july
                exception    except sundays · except in august
                beginning    starting 2027-01-01

Nothing is guessed. A sentence that leaves something open (`every day`: at what time?) or that means two things to two
people (`biweekly`, `next friday`, `at 9`) is refused, with the ways to say it.
"""

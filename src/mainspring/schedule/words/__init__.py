"""Schedules in English sentences that a person would accept. `sentence.in_words` is the way in.

Our own and not cron-descriptor's: its sentences say `every 7 minutes` of `*/7`, which starts anew each hour, know no
`H`, and join neither zones nor exceptions nor the expressions of a union.
"""

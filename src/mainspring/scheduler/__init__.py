"""Turns due schedules into runs, each occurrence into one.

Any number of schedulers may work at once. They share the lanes among themselves so as not to do the same work twice,
but safety never rests on that: a decision counts only if the cursor still stands where it was read and the ledger has
no row for the instant. Schedulers know nothing of workers: they meet in the database.
"""

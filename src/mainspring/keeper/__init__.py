"""Keeps the house in order: promotes what is due, rescues the runs of lost workers, expires, prunes, makes partitions.

Any number of keepers may run at once; each worker process has one by default. Safety never rests on which of them
acts: every step is a guarded statement that takes what it finds and leaves what another keeper holds.
"""

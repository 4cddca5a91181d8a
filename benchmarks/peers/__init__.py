"""The same no-op work through Mainspring and its peers, each in an environment of its own.

`comparison` is what `scripts/bench peers` runs; `roster` says who takes part and how each is set up; `programs` is what
runs inside the peers' environments, and therefore imports nothing of ours beyond `benchmarks.payload`.
"""

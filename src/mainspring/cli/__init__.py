"""The command line: one file per resource (runs, queues, workers …), no decisions.

Starting is quick because nothing is imported before it is needed: `commands.py` names the commands by their import
paths, and only the chosen one's module, with the database behind it, is loaded.

Exit codes: 0 done · 1 refused or failed, and the error's code says why · 2 the command line was not understood ·
130 interrupted by Ctrl-C before there was anything to drain.
"""

"""Starts a supervised worker: `run_worker.py APP SETTINGS`, as fault tests need it."""

from __future__ import annotations

import sys

import msgspec
import uvloop
from tests.system import sabotage

from mainspring import wiring
from mainspring.worker.settings import WorkerSettings

if __name__ == "__main__":
    sabotage.apply()
    settings = msgspec.json.decode(sys.argv[2], type=WorkerSettings)
    sys.exit(uvloop.run(wiring.supervise(wiring.DatabaseLocation.chosen(), sys.argv[1], settings)))

"""Starts a supervised worker: `run_worker.py APP SETTINGS`, as fault tests need it."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import uvloop

sys.path.insert(0, str(Path(__file__).parent))

import sabotage
from mainspring import wiring
from mainspring.worker.settings import WorkerSettings

if __name__ == "__main__":
    sabotage.apply()
    settings = msgspec.json.decode(sys.argv[2], type=WorkerSettings)
    sys.exit(uvloop.run(wiring.supervise(wiring.Place.chosen(), sys.argv[1], settings)))

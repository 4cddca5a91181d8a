"""A supervised worker for benchmarks: settings as one JSON argument."""

from __future__ import annotations

import sys

import msgspec
import uvloop

from mainspring import wiring
from mainspring.worker.settings import WorkerSettings


def main() -> None:
    settings = msgspec.json.decode(sys.argv[2], type=WorkerSettings)
    sys.exit(uvloop.run(wiring.supervise(wiring.DatabaseLocation.chosen(), sys.argv[1], settings)))


if __name__ == "__main__":
    main()

"""Examples are imported as a reader would, from the project's folder; what makes the reference, from docs."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

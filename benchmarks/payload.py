"""What jobs of a benchmark carry: one small JSON object, the same for each, or as long and different for each."""

from __future__ import annotations

import random
import string

CALL = {"customer": 12345, "plan": "pro", "note": "x" * 60}


def random_calls(count: int) -> list[dict[str, object]]:
    """As long as `CALL`, and with nothing in them that could be compressed away; the same ones each time."""
    made = random.Random(count)
    letters = string.ascii_letters + string.digits
    return [
        {"customer": made.randrange(10_000, 100_000), "plan": "pro", "note": "".join(made.choices(letters, k=60))}
        for _ in range(count)
    ]

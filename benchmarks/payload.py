"""What every job of a benchmark carries: one small JSON object."""

CALL = {"customer": 12345, "plan": "pro", "note": "x" * 60}

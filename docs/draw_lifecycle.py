"""Draws the lifecycle of a run in ARCHITECTURE.md from model/lifecycle.py, between two markers.

.venv/bin/python docs/draw_lifecycle.py
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from mainspring.model.lifecycle import ENDS, MOVES, PLACES, STAGED, State

PAGE = Path(__file__).parent.parent / "ARCHITECTURE.md"
BEGIN, END = "<!-- lifecycle: drawn by docs/draw_lifecycle.py -->\n", "<!-- /lifecycle -->\n"


def diagram() -> str:
    """A Mermaid state diagram: one arrow for each pair of states, with all the verbs that take it."""
    arrows: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for move in MOVES:
        for source, target in sorted(move.paths, key=_in_order):
            if source is not target:
                arrows[_shown(source), _shown(target)].append(move.verb)
    ends = [f"    {state} --> [*]" for state in State if state in ENDS]
    lines = [f"    {source} --> {target}: {', '.join(verbs)}" for (source, target), verbs in arrows.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, *ends, "```", ""])


def table() -> str:
    places = {state: f"`{PLACES.get(state, 'attempt')}`" for state in State}
    places[State.SCHEDULED] += f", or `{STAGED}` with a rank in the future"
    rows = [f"| `{state}` | {place} |" for state, place in places.items()]
    return "\n".join(["| state | the row is in |", "|---|---|", *rows, ""])


def drawn(page: str) -> str:
    """The page with its diagram as it should be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{diagram()}\n{table()}{END}{after}"


def _shown(state: State | None) -> str:
    return "[*]" if state is None else state.value


def _in_order(path: tuple[State | None, State | None]) -> list[int]:
    states = list(State)
    return [-1 if state is None else states.index(state) for state in path]


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"drew {PAGE.name}\n")

"""Flows as people see them: a tree for the terminal, and Mermaid for pages."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mainspring.model.lifecycle import State
from mainspring.model.payload import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mainspring.model.flow import FlowStatus, NodeStatus

MOST_LINES = 200
MOST_DRAWN = 500  # Mermaid draws no more in reasonable time
SHOWN_LENGTH = 60
MARKS = {
    State.SUCCEEDED: "✓",
    State.RUNNING: "▶",
    State.READY: "…",
    State.SCHEDULED: "◷",
    State.HELD: "◌",
    State.DEAD: "✗",
    State.LOST: "✗",
    State.EXPIRED: "✗",
    State.CANCELLED: "–",
}
_CLASSES = {State.SUCCEEDED: "done", State.RUNNING: "running", State.DEAD: "failed", State.LOST: "failed"}
_STYLES = (
    "classDef done fill:#d7f5dd,stroke:#2e7d32,color:#1b1b1b",
    "classDef running fill:#d9e8ff,stroke:#1565c0,color:#1b1b1b",
    "classDef failed fill:#ffdcdc,stroke:#c62828,color:#1b1b1b",
)


def tree(flow: FlowStatus, most: int = MOST_LINES) -> list[str]:
    """One line per node, below what it waits for; one that waits for several stands below the first of them."""
    children, roots = _children(flow)
    lines = list(_lines(flow, children, roots, most))
    hidden = len(flow.nodes) - len(lines)
    return lines if hidden <= 0 else [*lines, f"… and {hidden:,} more"]


def _children(flow: FlowStatus) -> tuple[Mapping[str, list[NodeStatus]], list[NodeStatus]]:
    names = {each.name for each in flow.nodes}
    children: defaultdict[str, list[NodeStatus]] = defaultdict(list)
    roots: list[NodeStatus] = []
    for node in flow.nodes:
        first = next((name for name in node.after if name in names), None)
        if first is None:
            roots.append(node)
        else:
            children[first].append(node)
    return children, roots


def _lines(
    flow: FlowStatus, children: Mapping[str, list[NodeStatus]], roots: Sequence[NodeStatus], most: int
) -> Iterator[str]:
    """Without recursion: a chain may be thousands of nodes long."""
    stack = [(node, "", "") for node in reversed(roots)]
    written = 0
    while stack and written < most:
        node, own, below = stack.pop()
        yield f"{own}{_label(node)}"
        written += 1
        under = children.get(node.name, [])
        for place, child in reversed(list(enumerate(under))):
            is_last = place == len(under) - 1
            stack.append((child, f"{below}{'└─ ' if is_last else '├─ '}", f"{below}{'   ' if is_last else '│  '}"))


def _label(node: NodeStatus) -> str:
    mark = "?" if node.state is None else MARKS[node.state]
    others = (
        f"  (also after {', '.join(_short(name) for name in node.after[1:4])}{_more(node)})" if node.after[1:] else ""
    )
    state = "forgotten" if node.state is None else node.state.value
    return f"{mark} {_short(node.name)}  {state}{others}{f'  ({node.children})' if node.children else ''}"


def _more(node: NodeStatus) -> str:
    return f" and {len(node.after) - 4} more" if len(node.after) > 4 else ""


def _short(name: str) -> str:
    return printable(name, SHOWN_LENGTH)


def mermaid(flow: FlowStatus, most: int = MOST_DRAWN) -> str:
    """The flow as a Mermaid flowchart."""
    drawn = flow.nodes[:most]
    numbers = {node.name: number for number, node in enumerate(drawn)}
    lines = ["flowchart TD"]
    for number, node in enumerate(drawn):
        state = "forgotten" if node.state is None else node.state.value
        style = f":::{_CLASSES[node.state]}" if node.state in _CLASSES else ""
        lines.append(f'    n{number}["{_escaped(node.name)}<br/><small>{state}</small>"]{style}')
    lines += [
        f"    n{numbers[name]} --> n{numbers[node.name]}" for node in drawn for name in node.after if name in numbers
    ]
    if len(flow.nodes) > most:
        lines.append(f'    more["… and {len(flow.nodes) - most:,} more"]')
    return "\n".join([*lines, *(f"    {style}" for style in _STYLES)]) + "\n"


def _escaped(name: str) -> str:
    """Names are anybody's text: nothing of them is read as Mermaid or HTML."""
    return "".join(each if each.isalnum() or each in " _-." else f"#{ord(each)};" for each in _short(name))

"""Flows as people see them: a tree for the terminal, and Mermaid for pages."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import islice
from typing import TYPE_CHECKING

from mainspring.model.lifecycle import State
from mainspring.model.payload import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mainspring.model.flow import FlowStatus, NodeStatus

MOST_LINES = 200
MOST_DRAWN = 500  # Mermaid draws no more in reasonable time
MOST_PARENTS = 3  # named beside a node
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
_TOLD = frozenset({State.RUNNING, State.DEAD, State.LOST, State.EXPIRED})  # of however many nodes
_CLASSES = {State.SUCCEEDED: "done", State.RUNNING: "running", State.DEAD: "failed", State.LOST: "failed"}
_STYLES = (
    "classDef done fill:#d7f5dd,stroke:#2e7d32,color:#1b1b1b",
    "classDef running fill:#d9e8ff,stroke:#1565c0,color:#1b1b1b",
    "classDef failed fill:#ffdcdc,stroke:#c62828,color:#1b1b1b",
)


def tree(flow: FlowStatus, most: int | None = MOST_LINES) -> list[str]:
    """One line per node, below what it waits for; one that waits for several stands below the first of them.

    Of a flow with more nodes than `most`, the first are shown, and all those of the others that run or have failed.
    """
    shown = list(islice(_lines(flow, *_children(flow)), most))
    lines = [line for _, line in shown]
    names = {node.name for node, _ in shown}
    hidden = [node for node in flow.nodes if node.name not in names]
    return [*lines, *_rest(hidden)] if hidden else lines


def _rest(hidden: Sequence[NodeStatus]) -> Iterator[str]:
    """How many more there are, in which states; and those who look at a flow because of them."""
    counts = Counter(map(_state, hidden))
    told = [node for node in hidden if node.state in _TOLD]
    states = ", ".join(f"{count:,} {state}" for state, count in counts.items())
    yield f"… and {len(hidden):,} more: {states}{'; of these run or failed:' if told else ''}"
    yield from (_label(node, "after", 0) for node in told)


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
    flow: FlowStatus, children: Mapping[str, list[NodeStatus]], roots: Sequence[NodeStatus]
) -> Iterator[tuple[NodeStatus, str]]:
    """Without recursion: a chain may be thousands of nodes long."""
    stack = [(node, "", "") for node in reversed(roots)]
    while stack:
        node, own, below = stack.pop()
        yield node, f"{own}{_label(node, 'also after', 1)}"
        under = children.get(node.name, [])
        for place, child in reversed(list(enumerate(under))):
            is_last = place == len(under) - 1
            stack.append((child, f"{below}{'└─ ' if is_last else '├─ '}", f"{below}{'   ' if is_last else '│  '}"))


def _label(node: NodeStatus, after: str, since: int) -> str:
    """`since`: the parents before that one are seen from where it stands."""
    mark = "?" if node.state is None else MARKS[node.state]
    named, more = node.after[since : since + MOST_PARENTS], len(node.after) - since - MOST_PARENTS
    others = f"{', '.join(map(_short, named))}{f' and {more} more' if more > 0 else ''}"
    parents = f"  ({after} {others})" if named else ""
    return f"{mark} {_short(node.name)}  {_state(node)}{parents}{f'  ({node.children})' if node.children else ''}"


def _state(node: NodeStatus) -> str:
    return "forgotten" if node.state is None else node.state.value


def _short(name: str) -> str:
    return printable(name, SHOWN_LENGTH)


def mermaid(flow: FlowStatus, most: int = MOST_DRAWN) -> str:
    """The flow as a Mermaid flowchart; with more nodes than `most`, those that run or have failed come first."""
    drawn = _drawn(flow.nodes, most)
    numbers = {node.name: number for number, node in enumerate(drawn)}
    lines = ["flowchart TD"]
    for number, node in enumerate(drawn):
        style = f":::{_CLASSES[node.state]}" if node.state in _CLASSES else ""
        lines.append(f'    n{number}["{_escaped(node.name)}<br/><small>{_state(node)}</small>"]{style}')
    lines += [
        f"    n{numbers[name]} --> n{numbers[node.name]}" for node in drawn for name in node.after if name in numbers
    ]
    if len(flow.nodes) > most:
        lines.append(f'    more["… and {len(flow.nodes) - most:,} more"]')
    return "\n".join([*lines, *(f"    {style}" for style in _STYLES)]) + "\n"


def _drawn(nodes: Sequence[NodeStatus], most: int) -> list[NodeStatus]:
    chosen = sorted(range(len(nodes)), key=lambda place: nodes[place].state not in _TOLD)[:most]
    return [nodes[place] for place in sorted(chosen)]


def _escaped(name: str) -> str:
    """Names are anybody's text: nothing of them is read as Mermaid or HTML."""
    return "".join(each if each.isalnum() or each in " _-." else f"#{ord(each)};" for each in _short(name))

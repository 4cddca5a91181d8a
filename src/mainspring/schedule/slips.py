"""Slips of the pen: a letter too many, too few or another, or two that changed places.

Words that are merely alike mean something else: `@biweekly` is not `@weekly`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def meant_by(written: str, known: Iterable[str]) -> str:
    """The one known word that is a slip away; nothing if there are several, or none."""
    near = [word for word in known if _is_one_slip(written, word)]
    return near[0] if len(near) == 1 else ""


def _is_one_slip(written: str, meant: str) -> bool:
    one, other = _without_common_ends(written, meant)
    swapped = len(one) == 2 and one == other[::-1]
    return one != other and (swapped or max(len(one), len(other)) == 1)


def _without_common_ends(one: str, other: str) -> tuple[str, str]:
    shorter = min(len(one), len(other))
    begin = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    one, other = one[begin:], other[begin:]
    shorter = min(len(one), len(other))
    end = next((at for at in range(shorter) if one[-1 - at] != other[-1 - at]), shorter)
    return one[: len(one) - end], other[: len(other) - end]

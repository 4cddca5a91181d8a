"""The PL/pgSQL functions that act in one lane: one per file in sql/functions, with the columns of runs filled in.

Each is made of separate statements, because Citus runs such a function where its lane lives (see store/distribute.py).
Of a single statement that inserts in a CTE it would fetch all rows, and send them to every node.

Migrations create them: one that says `-- functions: <digest>` creates all of them, as they are by now. So an edit of a
function, or of the columns in it, brings a migration with the new digest. Another signature is another function: the
old one stays while programs are served that call it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

from mainspring.store.statements import with_columns


@cache
def all_functions() -> dict[str, str]:
    """The statement that creates each of them, by its name."""
    folder = resources.files("mainspring.store").joinpath("sql", "functions")
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {file.name.removesuffix(".sql"): with_columns(file.read_text(encoding="utf-8")) for file in files}


def digest() -> str:
    """What the newest migration of functions names."""
    return hashlib.sha256("".join(all_functions().values()).encode()).hexdigest()[:16]

"""Cuts an SQL script into its statements, for servers that take them one at a time.

Citus sends the text it was given to its nodes, and they take one change of a table at a time.
"""

from __future__ import annotations

import re

# What may contain a semicolon that ends nothing, and the semicolon that does. A string that begins inside another one,
# or inside a comment, is none: the first that matches takes all of it.
_PART = re.compile(
    r"""
      (?P<comment> --[^\n]* | /\*.*?\*/ )
    | (?P<quoted>  \b[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" )
    | (?P<dollar>  (?<![\w$]) \$(?P<tag>[A-Za-z_]\w*)?\$ .*? \$(?(tag)(?P=tag))\$ )
    | (?P<end>     ; )
    """,
    re.DOTALL | re.VERBOSE,
)


def statements_of(script: str) -> list[str]:
    """The statements of a script in order, without the semicolons between them; comments stay with what follows."""
    found, begin, has_words = [], 0, False
    position = 0
    for part in _PART.finditer(script):
        has_words = has_words or bool(script[position : part.start()].strip()) or part.lastgroup in ("quoted", "dollar")
        position = part.end()
        if part.lastgroup == "end":
            if has_words:
                found.append(script[begin : part.start()].strip())
            begin, has_words = part.end(), False
    if has_words or script[position:].strip():
        found.append(script[begin:].strip())
    return found

"""Every page under docs/ runs: its Python blocks, put together in their order, are one program. (Tutorials are followed
step by step instead: test_tutorial.py.)

Where a `text` block follows a Python block, the program must have printed its lines. A program that defines
`async def main()` and does not run it is given the missing last line. A page with tests is run by pytest.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import PATIENCE

ROOT = Path(__file__).parent.parent.parent
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "mainspring_app=example:app")
PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if "```python" in page.read_text(encoding="utf-8") and page.parent.name != "tutorial"
]


def program_of(page: str) -> tuple[str, list[str]]:
    """The program, and the lines it has to print."""
    code, printed, previous = [], [], ""
    for language, block in FENCE.findall(page):
        if language == "python":
            code.append(block)
        elif language == "text" and previous == "python":
            printed += block.splitlines()
        previous = language
    program = "\n".join(code)
    if "\nasync def main()" in program and "asyncio.run(" not in program:
        program += "\n\nimport asyncio\n\nasyncio.run(main())\n"
    return program, printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
async def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, url: str) -> None:
    program, printed = program_of(page.read_text(encoding="utf-8"))
    (tmp_path / "example.py").write_text(program)
    done = subprocess.run(
        [sys.executable, *(PYTEST if "def test_" in program else ()), "example.py"],
        cwd=tmp_path,
        env=os.environ | {"MAINSPRING_DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert [line for line in printed if line not in done.stdout.splitlines()] == [], done.stdout

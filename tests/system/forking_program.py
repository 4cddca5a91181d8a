"""A program that submits, is forked as web servers and pools of processes are, and submits in both processes.

`forking_program.py HOW ENDING`: by `os.fork` or by `multiprocessing`, and its child ends by `exit` or by `_exit`.
Prints each run that it found again, with who submitted it.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import signal
import sys
from typing import NoReturn

from mainspring import Mainspring

PATIENCE = 100  # then whoever hangs is ended, and the test fails

app = Mainspring()


@app.job
def note(who: str) -> None: ...


def submit(who: str) -> str:
    return str(note.submit_sync(who).id)


def be_a_child(report: int, ending: str) -> NoReturn:
    signal.alarm(PATIENCE)
    ids = [submit("child")]
    gc.collect()  # what was inherited and nobody needs any more is put away
    ids.append(submit("child"))
    os.write(report, json.dumps(ids).encode())
    if ending == "_exit":
        os._exit(0)
    sys.exit()


def by_fork(ending: str) -> list[str]:
    report, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        be_a_child(end, ending)
    os.close(end)
    ids = [submit("parent, meanwhile")]
    with os.fdopen(report) as told:
        ids += json.loads(told.read())
    assert os.waitpid(pid, 0)[1] == 0
    return ids


def by_multiprocessing(ending: str) -> list[str]:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return [submit("parent, meanwhile"), *pool.map(submit, ["child", "child"])]


def main(how: str, ending: str) -> None:
    signal.alarm(PATIENCE)
    ids = [submit("parent, before")]
    ids += {"os.fork": by_fork, "multiprocessing": by_multiprocessing}[how](ending)
    ids += [submit("parent, after")]
    found = [app.blocking(app.runs.find(each)) for each in ids]
    print(json.dumps([run.payload["who"] for run in found]))
    app.close_sync()


if __name__ == "__main__":
    main(*sys.argv[1:])

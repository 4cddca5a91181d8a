"""docs/reference/settings.md: environment variables, settings of workers, pytest's ini options, limits."""

from __future__ import annotations

import dataclasses
import re
from datetime import timedelta
from typing import Any

from generators.commands import shown
from generators.markdown import joined, table
from generators.signatures import default_of, remarks_of
from generators.sources import ROOT
from mainspring.cli.commands import commands
from mainspring.control import dead, submitter
from mainspring.keeper import pruner
from mainspring.model import filter as filters
from mainspring.model import headers, job, lifecycle, listing, payload, policy, report
from mainspring.testing import plugin
from mainspring.worker.settings import WorkerSettings

OPENING = """\
# Settings

There is no configuration file: what is not said in code or on the [command line](cli.md) is said in the environment."""

VARIABLES = {
    "MAINSPRING_DATABASE_URL": "The PostgreSQL server: `postgresql://user:password@host:5432/database`. Several hosts"
    " and `target_session_attrs=read-write` are understood. Without it, the embedded PostgreSQL is used.",
    "MAINSPRING_REQUIRE_SERVER": "With `1`, nothing falls back to the embedded PostgreSQL: without a URL, programs and"
    " commands refuse to go on (`server-required`). For production, where a forgotten URL must not go unnoticed.",
    "MAINSPRING_DATA_DIR": "Where the embedded PostgreSQL keeps its data. Else `/var/lib/mainspring/data` for root, and"
    " `mainspring/data` in `$XDG_DATA_HOME` or `~/.local/share` for others.",
    "MAINSPRING_PG_BIN": "The folder with PostgreSQL's programs, for the embedded server. Else the wheel's, else the"
    " system's newest.",
    "MAINSPRING_TENANT": "The tenant that programs and commands act for, unless they are told otherwise. Else the one"
    " called `default`.",
    "MAINSPRING_LOG_LEVEL": "From which level on a worker's log is written: `debug`, `info`, `warning` or `error`.",
    "MAINSPRING_CACHE_DIR": "Where root keeps the copy of those programs that the server's own account can run.",
}
OF_SCRIPTS = {
    "MAINSPRING_PYTHON": "Which Python `scripts/bootstrap` takes.",
    "MAINSPRING_TEST_PROCESSES": "How many processes `scripts/test` uses. 4 unless told.",
}
# Between our own processes: whoever sets them from outside sets nothing.
INTERNAL = {"MAINSPRING_CHILD", "MAINSPRING_ZYGOTE", "MAINSPRING_LOG_FORMAT"}

LIMITS = {
    "arguments of a run, as JSON": payload.MAX_PAYLOAD_BYTES,
    "result of a run, as JSON": payload.MAX_RESULT_BYTES,
    "levels of nesting in either": f"{payload.MAX_DEPTH}",
    "checkpoint, as JSON": report.MAX_CHECKPOINT_BYTES,
    "log lines of an attempt": report.MAX_LOG_BYTES,
    "runs in one batch": f"{submitter.MAX_BATCH:,}",
    "delay, maximum age": job.MAX_DELAY,
    "attempts": f"{policy.MAX_ATTEMPTS:,}",
    "times that a run was there when its worker was lost": f"{lifecycle.MOST_CRASHES}, then it is dead",
    "pause between attempts": policy.MAX_BACK_OFF,
    "runs in one call of a handler": f"{job.MAX_CHUNK:,}",
    "wait for others to share a call": f"{job.MAX_CHUNK_WAIT.seconds} seconds",
    "tags of a run": f"{job.MAX_TAGS}, each of {job.MAX_TAG_LENGTH} characters",
    "labels of a run": f"{job.MAX_LABELS}",
    "headers of a run": f"{headers.MAX_HEADERS}, together of {headers.MAX_BYTES:,} bytes",
    "idempotency key": f"{job.MAX_KEY_LENGTH} characters",
    "runs on one page of a list": f"{listing.MOST_PER_PAGE:,}",
    "jobs or queues in one filter": f"{filters.MOST_NAMES}",
    "dead letters requeued or purged by id at once": f"{dead.MOST_AT_ONCE:,}",
}

KEPT = {
    "a worker that ended, for `mainspring worker list`": pruner.WORKERS_KEPT,
    "a completion that came too late (`stale`)": pruner.STALE_KEPT,
    "an operation that ended, for `mainspring operation list`": pruner.OPERATIONS_KEPT,
    "an idempotency key": "1 day after its run ended",
    "a unique key": "until its run is over, and its period; at least 1 hour",
    "dead letters, history, log lines and audit": "until somebody removes them",
}


class Recorder:
    """Stands for pytest's parser, and remembers which options the plugin adds."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str]] = []

    def addini(self, name: str, about: str, **_: object) -> None:
        self.rows.append((f"`{name}`", about))


def page() -> str:
    _check_variables()
    return joined(
        *(OPENING, "## Environment", table(("variable", "meaning"), _rows(VARIABLES))),
        *("In a clone of the project also:", table(("variable", "meaning"), _rows(OF_SCRIPTS))),
        *("## Workers", WORKERS, table(("option", "default", ""), _worker_settings())),
        *("## pytest", "In pytest's ini; see [how to test your jobs](../how-to/test-your-jobs.md).", _ini_options()),
        *("## Limits", table(("at most", ""), ((what, _size(most)) for what, most in LIMITS.items()))),
        *(
            "## What is kept, and for how long",
            KEPT_BY,
            table(("what", "kept for"), ((what, _size(span)) for what, span in KEPT.items())),
        ),
    )


KEPT_BY = "What is older is removed by any keeper, in small batches."
WORKERS = "What `mainspring worker` can be told. Defaults that are spans are in seconds."


def _check_variables() -> None:
    """A variable that is read and not described, or described and not read, stops us."""
    read = {name for path in ROOT.rglob("*.py") for name in re.findall(r'"(MAINSPRING_\w+)"', path.read_text("utf-8"))}
    if read != VARIABLES.keys() | INTERNAL:
        raise SystemExit(f"docs/generators/settings.py: describe or forget {read ^ (VARIABLES.keys() | INTERNAL)}")


def _rows(described: dict[str, str]) -> list[tuple[str, str]]:
    return [(f"`{name}`", about) for name, about in described.items()]


def _worker_settings() -> list[tuple[str, str, str]]:
    """What the command line can change."""
    options = {argument.field_info.name: argument for argument in shown(commands["worker"])}
    remarks = remarks_of(WorkerSettings)
    return [
        (f"`{options[name].name}`", default_of(field), remarks.get(name) or options[name].parameter.help or "")
        for name, field in ((each.name, each) for each in dataclasses.fields(WorkerSettings))
        if name in options
    ]


def _ini_options() -> str:
    recorder: Any = Recorder()
    plugin.pytest_addoption(recorder)
    return table(("option", "meaning"), recorder.rows)


def _size(most: object) -> str:
    if isinstance(most, timedelta):
        return f"{most.days // 365} years" if most.days >= 730 else f"{most.days} days"
    return f"{most // 1024} KiB" if isinstance(most, int) else str(most)

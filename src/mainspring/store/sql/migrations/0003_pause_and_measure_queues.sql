-- Queues can be paused and tell how fast they move; workers can be asked to drain.
-- serves: 1

-- What people decided about a queue. One without a row here was never decided about.
create table queue (
    tenant_id int not null,
    name text not null,
    paused_at timestamptz,
    paused_by text,
    pause_reason text,
    primary key (tenant_id, name),
    constraint a_paused_queue_says_by_whom check ((paused_at is null) = (paused_by is null))
);

-- What a worker has done for a line so far, as it says at its beats. Rates are differences between two looks.
-- Workers long gone are added up under the nil UUID.
create table tally (
    worker_id uuid not null,
    line_id int not null,
    finished bigint not null,                   -- attempts
    busy_seconds double precision not null,     -- what those took, added up
    holding int not null,                       -- runs claimed and not settled
    primary key (worker_id, line_id)
);

-- What a line looked like a little while ago.
create table line_sample (
    line_id int not null,
    at timestamptz not null default clock_now(),
    depth bigint not null,
    holding bigint not null,
    finished bigint not null,
    busy_seconds double precision not null,
    primary key (line_id, at)
);

alter table worker add column drain_requested_at timestamptz;

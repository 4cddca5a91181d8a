-- Caps on how many runs may wait for their first start. Who waits under a cap is known by rows of its own, beside the run: so
-- claims and settlements know of no caps, and runs without one have none of this.
-- Programs of before do not know caps: what they submit is not counted.
-- serves: 12
-- functions: ba612f048881effd

-- How many runs may wait for their first start: of a job, a queue or a tenant, all together or by what their key says.
create table backlog_cap (
    id int primary key,                         -- given out under the lock of limit_revision
    tenant_id int not null,
    scope text not null constraint caps_are_for_something_known check (scope in ('job', 'queue', 'tenant')),
    name text not null,                         -- of the job or queue; empty for a tenant
    key text not null default '',               -- what runs are told apart by; empty: all together
    most int not null constraint a_cap_is_positive check (most > 0),
    when_full text not null
        constraint what_happens_when_full_is_known check (when_full in ('refuse', 'drop_oldest', 'replace')),
    declared jsonb,                             -- what the code says, if a job declares it
    changed_at timestamptz not null default clock_now(),
    changed_by text not null,
    reason text not null default '',
    constraint caps_are_unique unique (tenant_id, scope, name, key)
);

-- How many entries a cap has for one value of its key, in the lane of that: whoever submits under it does so alone until
-- COMMIT, but for callers, in their own transactions.
create table backlog_gate (
    lane smallint not null,
    gate text collate "C" not null,             -- the cap's number, and the value: 7, 7:acme
    counted int not null default 0,             -- entries, but for those in backlog_addition
    checked int not null default 0,             -- of which so many waited when all were looked at
    full_until timestamptz,                     -- it was full: until then not all entries are looked at again
    tidy_at timestamptz not null,               -- when the keeper clears it away
    primary key (lane, gate)
) with (fillfactor = 50);
create index backlog_gate_tidy_idx on backlog_gate (lane, tidy_at);

-- Which runs were accepted under a cap, in the lane of the run. An entry stays when its run is claimed or ends, until somebody
-- looks: it counts as long as the run waits and has no fence yet.
create table backlog_entry (
    lane smallint not null,
    gate text collate "C" not null,
    place bigint not null,                      -- when it was accepted, in microseconds
    run_id uuid not null,
    primary key (lane, gate, place, run_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- Entries that were made in callers' own transactions and not counted yet, in the lane of the gate: a caller locks nothing.
create table backlog_addition (
    lane smallint not null,
    gate text collate "C" not null,
    run_id uuid not null,
    primary key (lane, gate, run_id)
);

-- Circuit breakers: after so many failures the runs of a job wait, until one that is tried succeeds. Where a breaker is open,
-- runs wait as at a limit; jobs without a breaker have none of this.
-- Programs of before do not know breakers: their workers execute what they claim, and their keepers let runs go that wait at
-- one, which workers of newer ones hold again.
-- serves: 12

-- When the runs of a job wait because too many of its attempts fail.
create table breaker (
    id int not null constraint breakers_have_numbers unique,   -- given out under the lock of limit_revision
    tenant_id int not null,
    job text not null,
    key text not null default '',               -- what runs are told apart by; empty: all together
    failures int not null constraint a_breaker_opens_after_some_failures check (failures > 0),
    within_seconds double precision not null constraint a_breaker_looks_back check (within_seconds > 0),
    failure_ratio double precision              -- of all attempts; null: any
        constraint a_failure_ratio_is_a_part check (failure_ratio > 0 and failure_ratio <= 1),
    probe_after double precision not null constraint probes_wait check (probe_after > 0),   -- seconds
    max_probe_after double precision not null,
    declared jsonb,                             -- what the code says, if a job declares it
    changed_at timestamptz not null default clock_now(),
    changed_by text not null,
    reason text not null default '',
    primary key (tenant_id, job),
    constraint probes_wait_no_longer_at_first check (max_probe_after >= probe_after)
);

-- For which values of their keys breakers are open. Runs wait there as at a limit with this number, which nothing had before.
create table breaker_opening (
    id int not null constraint openings_have_numbers unique,   -- given out under the lock of limit_revision
    tenant_id int not null,
    job text not null,
    value text not null,                        -- of the key; empty: the whole job
    opened_at timestamptz not null default clock_now(),
    opened_by text not null,
    failures int,                               -- that opened it, of so many attempts; null: somebody did
    attempts int,
    within_seconds double precision not null,
    error text,                                 -- the last of those failures
    reason text not null default '',
    has_probes boolean not null,                -- else it stays open until somebody closes it
    primary key (tenant_id, job, value)
);

-- How attempts of jobs with a breaker ended, by value of its key and slice of time: in the lane of that value. Workers add to
-- it several times a second; one that is killed has not said what it counted last.
create table breaker_tally (
    lane smallint not null,
    breaker_id int not null,
    value text collate "C" not null,
    since double precision not null,            -- when the slice began, in seconds since 1970
    until double precision not null,            -- it matters
    successes int not null,
    failures int not null,
    primary key (lane, breaker_id, value, since)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
create index breaker_tally_until_idx on breaker_tally (lane, until);

-- How many probes have gone out at an opening, and when the next one may: in the lane of its gate, written by whoever
-- releases it. Before the first there is no row.
create table breaker_probe (
    lane smallint not null,
    opening_id int not null,
    sent int not null,
    pause double precision not null,            -- seconds from a probe that fails to the next
    probe_at double precision not null,         -- seconds since 1970
    failed_at double precision,                 -- when the last one failed
    error text,
    primary key (lane, opening_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

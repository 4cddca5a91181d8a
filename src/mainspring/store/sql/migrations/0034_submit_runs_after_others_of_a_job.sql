-- Chains: a run of a job is submitted whenever one of another job has ended as told. And runs that get the results of many
-- others as arguments have them collected while they wait.
-- Programs of before go on; runs that their workers complete are followed by none.
-- serves: 12
-- functions: e02cf4bbe9987125

alter table dependency add column results bytea;

-- Jobs a run of which is submitted whenever a run of another job has ended as told. Written under the lock of
-- limit_revision, so that workers, which know its number, hear of it.
create table chain (
    tenant_id int not null,
    upstream text not null,                     -- by its name: it may come to exist later
    downstream text not null,
    condition text not null
        constraint a_chain_has_a_known_condition check (condition in ('success', 'failure', 'end')),
    argument text,                              -- of the downstream job, which gets the result
    is_paused boolean not null default false,
    changed_at timestamptz not null default clock_now(),
    changed_by text not null,
    reason text not null default '',
    primary key (tenant_id, upstream, downstream)
);

-- Runs that have ended, and after which runs of other jobs are to be submitted.
create table chain_news (
    lane smallint not null,
    run_id uuid not null,
    fence int not null,                         -- a dead letter that is requeued ends again
    state run_state not null,
    tenant_id int not null,
    job_id int not null,
    primary key (lane, run_id, fence, state)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

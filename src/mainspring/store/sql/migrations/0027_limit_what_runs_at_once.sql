-- Limits on how many runs execute at once. A run that may not start yet waits in `held` at a gate; whoever frees a slot, or
-- submits, releases what has its turn. Runs without limits have none of this: two columns more that are null.
-- Programs of before do not know limits: their workers execute what they claim, and slots that they leave behind are found
-- by the keepers of newer ones.
-- serves: 12
-- functions: 8c19b6764b7fd3af

-- What limits how many runs may execute at once, or start per second: of a job, a queue or a tenant, all together or by
-- what their key says.
create table limit_rule (
    id int primary key,                         -- given out under the lock of limit_revision
    tenant_id int not null,
    scope text not null constraint limits_are_for_something_known check (scope in ('job', 'queue', 'tenant')),
    name text not null,                         -- of the job or queue; empty for a tenant
    key text not null default '',               -- what runs are told apart by; empty: all together
    most int constraint a_limit_is_positive check (most > 0),   -- at once; null: any number
    rate double precision constraint a_rate_is_positive check (rate > 0),   -- per second; null: any
    burst int not null default 1 constraint a_burst_is_positive check (burst > 0),
    is_strict boolean not null default false,   -- one after the other in the order of acceptance, retries too
    halts_on_dead boolean not null default false,
    is_spread boolean not null default false,   -- some of its runs are not in the lane of their gate
    declared jsonb,                             -- what the code says, if a job declares it
    changed_at timestamptz not null default clock_now(),
    changed_by text not null,
    reason text not null default '',
    constraint limits_are_unique unique (tenant_id, scope, name, key),
    constraint a_limit_limits_something check (most is not null or rate is not null)
);

-- One row: how often limits were written. Who writes one locks it until COMMIT: see `calendar_revision`.
create table limit_revision (
    is_only_row boolean primary key default true constraint there_is_one_row_of_limits check (is_only_row),
    revision bigint not null default 0
);
insert into limit_revision default values;

-- Who holds a slot of which gate: a row for each, in the lane of its run. It appears when the run is released, and goes in
-- the transaction by which the run ends or waits again. A count is never kept: it could drift.
create table slot (
    lane smallint not null,
    run_id uuid not null,
    rule_id int not null,
    gate text collate "C" not null,
    place smallint not null,                    -- among the gates of its run
    is_strict boolean not null,                 -- kept while the run waits for another attempt
    halts_on_dead boolean not null,             -- kept while the run is a dead letter
    taken_at timestamptz not null default clock_now(),
    primary key (lane, run_id, rule_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
create index slot_gate_idx on slot (lane, gate) where gate is not null;

-- How many tokens a gate with a rate had, and when: in the lane of the gate, written by whoever releases runs there. One that
-- nobody has used for long is full, and needs no row.
create table bucket (
    lane smallint not null,
    gate text collate "C" not null,
    tokens double precision not null,
    at double precision not null,               -- seconds since 1970
    full_at double precision not null,
    primary key (lane, gate)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- The gates of a run, one per line, in the order in which it passes them.
alter table ready add column gates text;        -- of which it holds slots
alter table later add column gates text;        -- at which it will wait when it is due
alter table held add column gates text,
                 add column gate text collate "C",   -- at which it waits
                 add column turn bigint;             -- its place there: see turn_of
create index held_gate_idx on held (lane, gate, turn) where gate is not null;

-- The place of a run at a gate: by its priority and when it came there; at one with strict order (its number ends in an
-- exclamation mark) by when it was accepted, and by nothing else.
create function turn_of(gate text, priority smallint, submitted_at timestamptz) returns bigint
language sql stable parallel safe as $$
    select case when split_part(gate, ':', 1) like '%!' then (date_part('epoch', submitted_at) * 1000000)::bigint
                else (priority::bigint << 56) + mainspring.rank_now() end
$$;

-- The gate that follows another one; null after the last.
create function gate_after(gates text, gate text) returns text language sql immutable parallel safe as $$
    select (string_to_array(gates, E'\n'))[array_position(string_to_array(gates, E'\n'), gate) + 1]
$$;

-- What sets a run apart, and after a line break the gates of which it holds slots.
create function special_of(crashes smallint, first_started_at timestamptz, overrides jsonb, gates text)
returns text language sql immutable parallel safe as $$
    select nullif(coalesce(mainspring.special_of(crashes, first_started_at, overrides), '')
                  || coalesce(E'\n' || gates, ''), '')
$$;

-- Finish a run on a connection of its handler's: success, if the lease is still this worker's and nobody asked the run to
-- stop; else an error, so that nothing of that transaction happens. It is settle, history and close in one.
create or replace function finish_run(
    run uuid, fence int, lane int, lease uuid, place int, worker uuid, started_at timestamptz, result text
) returns void language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
begin
    update lease set done = set_bit(done, finish_run.place, 1)
    where lane = finish_run.lane::smallint and id = finish_run.lease and worker_id = finish_run.worker
      and ids[finish_run.place + 1] = finish_run.run
      and get_bit(done, finish_run.place) = 0 and get_bit(cancel, finish_run.place) = 0;

    if not found then
        if exists (select from lease
                   where lane = finish_run.lane::smallint and id = finish_run.lease and worker_id = finish_run.worker
                     and get_bit(done, finish_run.place) = 0 and get_bit(cancel, finish_run.place) = 1) then
            raise exception 'run % was asked to stop', finish_run.run using errcode = 'MS002',
                hint = 'Let this transaction roll back.';
        end if;
        raise exception 'run % with fence % is no longer this worker''s', finish_run.run, finish_run.fence
            using errcode = 'MS001', hint = 'Let this transaction roll back: whoever has the run now does its work.';
    end if;

    -- Our own results wait behind this row until COMMIT: who forgets that must not keep them waiting for ever.
    perform set_config('idle_in_transaction_session_timeout', '10s', true);

    insert into attempt (lane, run_id, fence, attempt, tenant_id, job_id, job_version, line_id, priority, outcome, state,
                         due_at, ready_at, claimed_at, started_at, finished_at, worker_id, result, codec, payload,
                         headers, tags, idempotency_key, submitted_by, submitted_at)
    select lease.lane, run.id, run.fence, run.attempt + 1, run.tenant_id, run.job_id, run.job_version, run.line_id,
           run.priority, 'succeeded', 'succeeded', run.due_at, run.ready_at, lease.claimed_at, finish_run.started_at,
           clock_now() + (clock_timestamp() - now()), lease.worker_id, convert_to(finish_run.result, 'UTF8'), run.codec,
           run.payload, run.headers, run.tags, run.idempotency_key, run.submitted_by, run.submitted_at
    from lease cross join lateral unnest(lease.runs) with ordinality as run
    where lease.lane = finish_run.lane::smallint and lease.id = finish_run.lease
      and run.ordinality = finish_run.place + 1;
    perform end_runs(finish_run.lane::smallint, array[finish_run.run]);

    delete from lease
    where lane = finish_run.lane::smallint and id = finish_run.lease and bit_count(done) = bit_length(done);
end $$;

-- It answers with gates, too, now.
drop function if exists promote_runs(smallint, smallint[], timestamptz[], int);

-- What attempts report while they go on: progress, log lines, checkpoints.
-- serves: 1

-- The newest word of a run about how far it is. It goes when the run ends.
create table progress (
    lane smallint not null,
    run_id uuid not null,
    fence int not null,
    attempt smallint not null,
    fraction real not null constraint progress_is_0_to_1 check (fraction between 0 and 1),
    message text not null,
    noted_at timestamptz not null default clock_now(),
    primary key (lane, run_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- What the next attempt should know. It goes when the run ends; a dead letter keeps it for its requeue.
create table checkpoint (
    lane smallint not null,
    run_id uuid not null,
    fence int not null,
    value bytea not null,
    stored_at timestamptz not null default clock_now(),
    primary key (lane, run_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Log lines of attempts, some in each row: [[microseconds since 1970, level, logger, text], …]. Partitioned as history
-- is. A part may be there twice (it was written again when its attempt ended); whoever reads takes one of them.
create table log (
    lane smallint not null,
    run_id uuid not null,
    fence int not null,
    attempt smallint not null,
    part int not null,
    lines json not null,
    recorded_at timestamptz not null default clock_now()
) partition by range (recorded_at);
create index log_run_idx on log (lane, run_id, fence, part);

create or replace function add_history_partition(day date) returns boolean
language plpgsql set search_path = mainspring, pg_temp set lock_timeout = '2s' set timezone = 'UTC' as $$
declare
    parent text;
    partition_name text;
    has_made_one boolean := false;
begin
    foreach parent in array array['attempt', 'log'] loop
        partition_name := parent || '_' || to_char(day, 'YYYYMMDD');
        if to_regclass(partition_name) is null then
            execute format('create table %I (like %I including defaults including constraints including indexes)',
                           partition_name, parent);
            execute format('alter table %I attach partition %I for values from (%L) to (%L)',
                           parent, partition_name, day::timestamptz, (day + 1)::timestamptz);
            has_made_one := true;
        end if;
    end loop;
    return has_made_one;
exception when duplicate_table or unique_violation or duplicate_object then
    return false;   -- another keeper made it at the same moment
end $$;

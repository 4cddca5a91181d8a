-- Remove leases of one lane that are this worker's, and of which nothing was settled, and record that all their runs
-- succeeded. Starts, ends (microseconds since 2000) and results are those of all the leases, one lease after the other;
-- `sizes` says how many runs each has. No results at all: all are null. Answers which leases there were: about the others
-- the worker has to look closer. One by one, in the order given, which is the one in which everybody locks leases: no
-- waiting in a circle.
-- Starts and ends are arrays written as text: the driver takes five times as long to make an array of numbers, and Citus
-- cannot pass on a call that turns text into one.
create or replace function complete_whole_leases(
    lane smallint, worker uuid, leases uuid[], sizes int[], starts text, ends text, results bytea[]
) returns uuid[] language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    all_starts bigint[] := complete_whole_leases.starts::bigint[];
    all_ends bigint[] := complete_whole_leases.ends::bigint[];
    completed uuid[] := '{}';
    number int := 0;
    before int := 0;
    this uuid;
    size int;
    lease_claimed_at timestamptz;
    lease_runs run_row[];
begin
    foreach this in array leases loop
        number := number + 1;
        size := sizes[number];
        delete from lease
        where lease.lane = complete_whole_leases.lane and lease.id = this
          and worker_id is not distinct from worker   -- not `=`: lease_worker_idx crawls over dead leases
          and bit_count(done) = 0 and bit_length(done) = size
        returning claimed_at, runs into lease_claimed_at, lease_runs;
        if found then
            insert into attempt (lane, run_id, attempt, outcome, state, claimed_at, started_at, finished_at, worker_id, result,
                                 ready_at, {recorded})
            select complete_whole_leases.lane, run.id, run.attempt + 1, 'succeeded', 'succeeded', lease_claimed_at,
                   to_timestamp(946684800 + run.started / 1000000.0::double precision),
                   to_timestamp(946684800 + run.finished / 1000000.0::double precision), worker, run.result,
                   run.ready_at, {recorded of run}
            from rows from (unnest(all_starts[before + 1 : before + size]), unnest(all_ends[before + 1 : before + size]),
                            unnest(results[before + 1 : before + size]), unnest(lease_runs))
                     as run (started, finished, result);
            completed := completed || this;
        end if;
        before := before + size;
    end loop;
    return completed;
end $$;

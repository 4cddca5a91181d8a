-- A lease all of whose runs succeeded goes to history in one call, on the server: what its runs brought along does not
-- travel to the worker and back.
-- serves: 12

-- Remove leases of one lane that are this worker's, and of which nothing was settled, and record that all their runs
-- succeeded. The arrays of starts, ends (microseconds since 2000) and results are those of all the leases, one lease after
-- the other; `sizes` says how many runs each has. No results at all: all are null. Answers which leases there were: about
-- the others the worker has to look closer.
-- One by one, in the order given, which is the one in which everybody locks leases: no waiting in a circle. Separate
-- statements, each of one lane: so Citus runs all of it where the lane lives.
create function complete_leases(
    lane int, worker uuid, leases uuid[], sizes int[], starts bigint[], ends bigint[], results bytea[]
) returns uuid[] language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    own smallint := complete_leases.lane::smallint;
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
        where lane = own and id = this
          and worker_id is not distinct from worker   -- not `=`: lease_worker_idx crawls over dead leases
          and bit_count(done) = 0 and bit_length(done) = size
        returning claimed_at, runs into lease_claimed_at, lease_runs;
        if found then
            insert into attempt (lane, run_id, fence, attempt, tenant_id, job_id, job_version, line_id, priority,
                                 outcome, state, due_at, ready_at, claimed_at, started_at, finished_at, worker_id,
                                 result, codec, payload, headers, tags, idempotency_key, submitted_by, submitted_at)
            select own, run.id, run.fence, run.attempt + 1, run.tenant_id, run.job_id, run.job_version, run.line_id,
                   run.priority, 'succeeded', 'succeeded', run.due_at, run.ready_at, lease_claimed_at,
                   to_timestamp(946684800 + run.started / 1000000.0::double precision),
                   to_timestamp(946684800 + run.finished / 1000000.0::double precision), worker, run.result,
                   run.codec, run.payload, run.headers, run.tags, run.idempotency_key, run.submitted_by,
                   run.submitted_at
            from rows from (unnest(starts[before + 1 : before + size]), unnest(ends[before + 1 : before + size]),
                            unnest(results[before + 1 : before + size]), unnest(lease_runs))
                     as run (started, finished, result);
            completed := completed || this;
        end if;
        before := before + size;
    end loop;
    return completed;
end $$;

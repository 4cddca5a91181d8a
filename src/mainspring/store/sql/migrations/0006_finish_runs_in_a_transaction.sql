-- A handler may finish its run inside its own transaction, together with what it does there.
-- serves: 1

-- Finish a run on a connection of its handler's: success, if the lease is still this worker's and nobody asked the run to
-- stop; else an error, so that nothing of that transaction happens. It is settle, history and close in one.
create function finish_run(
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

    delete from lease
    where lane = finish_run.lane::smallint and id = finish_run.lease and bit_count(done) = bit_length(done);
end $$;

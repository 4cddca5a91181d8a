-- Run runs of one lane that ended once more: each as a new run in the same lane that says whose rerun it is. What the old
-- one was to be done under (key, expiry, policies of its own) is over with it; which occurrence it was for is not.
create or replace function rerun_runs(
    lane smallint, runs uuid[], fresh_ids uuid[], since timestamptz, tenant int, new_codec smallint, new_payload bytea,
    actor text, detail jsonb
) returns table (run_id uuid, id uuid, line_id int, priority smallint)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
begin
    insert into ready (lane, id, {recorded except fence, due_at, idempotency_key, submitted_at, submitted_by, headers, codec,
                                  payload},
                       submitted_by, headers, codec, payload)
    select rerun_runs.lane, fresh.id,
           {recorded of ended except fence, due_at, idempotency_key, submitted_at, submitted_by, headers, codec, payload},
           rerun_runs.actor,
           jsonb_strip_nulls(jsonb_build_object(
               'rerun_of', ended.run_id, 'schedule', ended.headers -> 'schedule',
               'schedule_version', ended.headers -> 'schedule_version', 'occurrence', ended.headers -> 'occurrence',
               'previous_occurrence', ended.headers -> 'previous_occurrence',
               'occurrence_due', ended.headers -> 'occurrence_due',
               '@occurrence', ended.headers -> '@occurrence', '@due', ended.headers -> '@due')),
           coalesce(rerun_runs.new_codec, ended.codec), coalesce(rerun_runs.new_payload, ended.payload)
    from unnest(rerun_runs.runs, rerun_runs.fresh_ids) as fresh (run_id, id)
    cross join lateral (
        select * from attempt
        where attempt.lane = rerun_runs.lane and attempt.run_id = fresh.run_id
          and attempt.recorded_at >= rerun_runs.since and attempt.tenant_id = rerun_runs.tenant
          and attempt.state in ({ends}) and attempt.payload is not null
        order by attempt.recorded_at desc limit 1) as ended;
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select rerun_runs.lane, rerun_runs.tenant, rerun_runs.actor, 'run.rerun', ready.headers ->> 'rerun_of',
           rerun_runs.detail || jsonb_build_object('rerun', ready.id)
    from ready where ready.lane = rerun_runs.lane and ready.id = any (rerun_runs.fresh_ids)
      and ready.tenant_id = rerun_runs.tenant;
    return query
    select (ready.headers ->> 'rerun_of')::uuid, ready.id, ready.line_id, ready.priority
    from ready where ready.lane = rerun_runs.lane and ready.id = any (rerun_runs.fresh_ids)
      and ready.tenant_id = rerun_runs.tenant;
end $$;

-- Runs of one lane have ended, or are dead letters now: note it where other jobs are submitted after theirs. Whoever sees to
-- chains submits them after COMMIT (`store/triggering.py`). How they ended is in history by now, written in this transaction.
-- A dead letter that is purged ended before that.
create or replace function tell_chains(lane smallint, runs uuid[]) returns void
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
begin
    if not exists (select from chain) then
        return;
    end if;
    insert into chain_news (lane, run_id, fence, state, tenant_id, job_id)
    select tell_chains.lane, ended.run_id, ended.fence, ended.state, ended.tenant_id, ended.job_id
    from unnest(tell_chains.runs) as one (id) cross join lateral (
        select attempt.run_id, attempt.fence, attempt.state, attempt.tenant_id, attempt.job_id,
               attempt.attempt = 0 and attempt.error ->> 'code' = 'purged' as is_purged
        from attempt
        where attempt.lane = tell_chains.lane and attempt.run_id = one.id
          and attempt.recorded_at >= clock_now() - interval '1 day'
          and (attempt.state in ({ends}) or attempt.state = 'dead')
        -- Not by time alone: whoever ends it now may have begun before an attempt was recorded.
        order by attempt.fence desc, attempt.state = 'dead', attempt.recorded_at desc limit 1) as ended
    where ended.is_purged is not true
      and ended.job_id in (
          select job.id from chain join job on job.tenant_id = chain.tenant_id and job.name = chain.upstream)
    on conflict do nothing;
end $$;

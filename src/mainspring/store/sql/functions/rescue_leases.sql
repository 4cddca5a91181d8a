-- Take every unfinished run out of some leases of a lost worker: back in line; or, if it was around at too many crashes,
-- among the dead letters; or to its end, if it may not start again or was to be cancelled. Answers with counts, and with
-- what is to be said about runs that came to a bad end.
-- A worker that ended by itself (`stopped`) and left leases behind could not settle: nobody crashed, nothing is counted.
-- A lease being settled right now is passed over and seen next time; whoever settles afterwards finds no lease. A started
-- attempt leaves a trace, so each run gets its row of history.
create or replace function rescue_leases(lane smallint, worker uuid, count int, most_crashes int)
returns table (leases bigint, rescued bigint, cancelled bigint, lost bigint, buried bigint, bad_ends jsonb)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    is_crash boolean;
    picked uuid[];
    unfinished run_row[];
    states run_state[];
    claims timestamptz[];
    errors jsonb[];
begin
    -- Beyond the first, only as many as are no more than 100 MB: their runs become one array, of which 1 GB is the limit.
    picked := array(
        select few.id from (
            select found.id, sum(found.size) over (order by found.id) - found.size as size_before
            from (select lease.id, pg_column_size(lease.runs) as size from lease
                  where lease.lane = rescue_leases.lane and lease.worker_id = rescue_leases.worker
                  limit rescue_leases.count for update skip locked) as found) as few
        where few.size_before < 100000000);
    if cardinality(picked) = 0 then
        return;
    end if;
    is_crash := not exists (select from worker where worker.id = rescue_leases.worker and worker.state = 'stopped');

    select array_agg(run_of({run by name except crashes}, crashes => crashes_now, ready_at => ready_at)),
           array_agg(state), array_agg(claimed_at)
    into unfinished, states, claims
    from (
        select run.*, lease.claimed_at, (run.crashes + is_crash::int)::smallint as crashes_now,
               case when get_bit(lease.cancel, run.ordinality::int - 1) = 1 then 'cancelled'
                    when exists (select from line
                                 where line.id = run.line_id and line.labels @> array['delivery=at_most_once']) then 'lost'
                    when is_crash and run.crashes + 1 >= rescue_leases.most_crashes then 'dead'
                    else 'ready' end::run_state as state
        from lease cross join lateral unnest(lease.runs) with ordinality as run
        where lease.lane = rescue_leases.lane and lease.id = any (picked)
          and get_bit(lease.done, run.ordinality::int - 1) = 0) as taken;
    delete from lease where lease.lane = rescue_leases.lane and lease.id = any (picked);
    select array_agg(
               case when state = 'dead'
                    then jsonb_build_object('code', 'crashed-too-often', 'message',
                                            'Its worker was lost ' || crashes || ' times while it ran.')
                    when not is_crash
                    then jsonb_build_object('code', 'worker-gave-up', 'message',
                                            'The worker could not settle its results and ended; its runs were taken over.')
                    when state = 'lost'
                    then jsonb_build_object('code', 'worker-lost', 'message', 'The worker sent no more heartbeats;'
                                            ' delivered at most once, it does not start again.')
                    else jsonb_build_object('code', 'worker-lost', 'message',
                                            'The worker sent no more heartbeats; its runs were taken over.') end)
    into errors
    from rows from (unnest(states), unnest(unfinished)) as run (state);

    insert into ready (lane, {run except expires_at, first_started_at}, expires_at, first_started_at, rank, gates)
    select rescue_leases.lane, {run of run except expires_at, first_started_at}, run.retry_until,
           coalesce(run.first_started_at, run.claimed_at), (date_part('epoch', run.ready_at) * 1000000)::bigint,
           (select string_agg(slot.gate, E'\n' order by slot.place) from slot
            where slot.lane = rescue_leases.lane and slot.run_id = run.id)   -- its slots come back in line with it
    from rows from (unnest(states), unnest(claims), unnest(unfinished)) as run (state, claimed_at)
    where run.state = 'ready';
    insert into dead (lane, {run except expires_at, first_started_at}, expires_at, first_started_at)
    select rescue_leases.lane, {run of run except expires_at, first_started_at}, run.retry_until,
           coalesce(run.first_started_at, run.claimed_at)
    from rows from (unnest(states), unnest(claims), unnest(unfinished)) as run (state, claimed_at)
    where run.state = 'dead';
    insert into attempt (lane, run_id, {recorded except payload}, payload, attempt, outcome, state, ready_at, claimed_at,
                         worker_id, error)
    select rescue_leases.lane, run.id, {recorded of run except payload},
           case when run.state in ({ends}) then run.payload end, run.attempt + 1,
           case when run.state = 'cancelled' then 'cancelled' when is_crash then 'crashed'
                else 'interrupted' end::attempt_outcome,
           run.state, run.ready_at, run.claimed_at, rescue_leases.worker, run.error
    from rows from (unnest(states), unnest(claims), unnest(errors), unnest(unfinished)) as run (state, claimed_at, error);
    -- What an end brings about may ask history how it ended.
    perform free_slots(rescue_leases.lane, array(
        select run.id from rows from (unnest(states), unnest(unfinished)) as run (state) where run.state = 'dead'), 'dead');
    perform tell_children(rescue_leases.lane, array(
        select run.id from rows from (unnest(states), unnest(unfinished)) as run (state) where run.state = 'dead'));
    perform tell_chains(rescue_leases.lane, array(
        select run.id from rows from (unnest(states), unnest(unfinished)) as run (state) where run.state = 'dead'));
    perform end_runs(rescue_leases.lane, array(
        select run.id from rows from (unnest(states), unnest(unfinished)) as run (state) where run.state in ({ends})));

    return query
    select cardinality(picked)::bigint, count(*) filter (where run.state = 'ready'),
           count(*) filter (where run.state = 'cancelled'), count(*) filter (where run.state = 'lost'),
           count(*) filter (where run.state = 'dead'),
           coalesce(jsonb_agg(jsonb_build_array(run.id, job.name, run.attempt + 1, run.state,
                                                case when is_crash then 'crashed' else 'interrupted' end,
                                                run.error ->> 'message'))
                        filter (where run.state in ('dead', 'lost') and job.name is not null), '[]')
    from rows from (unnest(states), unnest(errors), unnest(unfinished)) as run (state, error)
    left join job on job.id = run.job_id;
end $$;

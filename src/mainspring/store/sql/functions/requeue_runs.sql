-- Put dead letters of one lane back in line, each once: whoever deletes the row requeues it. Attempts and crashes start
-- again, the fence goes on. The old expiry is dropped: someone wants the run after all. A null leaves its attribute.
-- One whose unique key another run holds stays where it is.
create or replace function requeue_runs(
    lane smallint, runs uuid[], tenant int, codec smallint, payload bytea, max_age double precision, actor text,
    detail jsonb
) returns table (id uuid, line_id int, priority smallint)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    taken run_row[];
    resumed uuid[] := '{}';
    refused uuid[] := '{}';
    its_id uuid;
    its_job int;
    its_kept text;
    may_come boolean;
begin
    for its_id, its_job, its_kept in
        select dead.id, dead.job_id, dead.headers ->> '@unique' from dead
        where dead.lane = requeue_runs.lane and dead.id = any (requeue_runs.runs)
          and dead.tenant_id = requeue_runs.tenant and dead.headers ->> '@unique' is not null
        order by substr(dead.headers ->> '@unique', strpos(dead.headers ->> '@unique', ' ')) collate "C", dead.job_id, dead.id
    loop
        select resume_unique_key(requeue_runs.lane, its_id, requeue_runs.tenant, its_job, its_kept, resumed) into may_come;
        if may_come then
            resumed := resumed || its_id;
        else
            refused := refused || its_id;
        end if;
    end loop;
    with gone as (
        delete from dead where dead.lane = requeue_runs.lane and dead.id = any (requeue_runs.runs)
          and dead.tenant_id = requeue_runs.tenant and dead.id <> all (refused)
        returning run_of({run by name}, ready_at => null) as run)
    select array_agg(gone.run) into taken from gone;
    if taken is null then
        return;
    end if;

    if requeue_runs.payload is not null then   -- it may be under other limits by now
        perform free_slots(requeue_runs.lane, array(select run.id from unnest(taken) as run), 'succeeded');
    end if;
    insert into ready (lane, {run except attempt, crashes, first_started_at, due_at, revision, codec, payload,
                              expires_at, retry_until},
                       revision, codec, payload, expires_at, retry_until, gates)
    select requeue_runs.lane, {run of run except attempt, crashes, first_started_at, due_at, revision, codec, payload,
                               expires_at, retry_until},
           run.revision + 1, coalesce(requeue_runs.codec, run.codec), coalesce(requeue_runs.payload, run.payload),
           clock_now() + requeue_runs.max_age * interval '1 second',
           clock_now() + requeue_runs.max_age * interval '1 second',
           (select string_agg(slot.gate, E'\n' order by slot.place) from slot
            where slot.lane = requeue_runs.lane and slot.run_id = run.id)
    from unnest(taken) as run;
    update schedule_run set is_dead = false   -- those behind it wait for it again
    where schedule_run.lane = requeue_runs.lane
      and schedule_run.run_id = any (array(select run.id from unnest(taken) as run));
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select requeue_runs.lane, run.tenant_id, requeue_runs.actor, 'run.requeue', run.id::text, requeue_runs.detail
    from unnest(taken) as run;
    return query select run.id, run.line_id, run.priority from unnest(taken) as run;
end $$;

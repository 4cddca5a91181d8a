-- Pause a schedule if as many of its runs in a row ended without success as it says; answers whether it was paused. Whoever
-- changes it at this moment, or fires it, has locked it: then it is passed over, and looked at again.
create or replace function pause_failing(lane int, schedule uuid, actor text) returns boolean
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    own smallint := pause_failing.lane::smallint;
    its_tenant int;
    its_limit int;
    failures bigint;
    last_run uuid;
    last_state run_state;
    last_message text;
    why text;
begin
    perform from schedule where schedule.lane = own and schedule.id = pause_failing.schedule;
    if not found then
        delete from schedule_failure
        where schedule_failure.lane = own and schedule_failure.schedule_id = pause_failing.schedule;
        return false;
    end if;
    select schedule.tenant_id, case when schedule.state = 'active' then schedule.pause_after_failures end
    into its_tenant, its_limit
    from schedule where schedule.lane = own and schedule.id = pause_failing.schedule for update skip locked;
    if not found then
        return false;
    end if;
    select count(*) into failures
    from schedule_failure
    where schedule_failure.lane = own and schedule_failure.schedule_id = pause_failing.schedule;
    if failures >= its_limit then
        perform from cursor
        where cursor.lane = own and cursor.schedule_id = pause_failing.schedule for update skip locked;
        if not found then
            return false;
        end if;
        select schedule_failure.run_id, schedule_failure.state, schedule_failure.message
        into last_run, last_state, last_message
        from schedule_failure
        where schedule_failure.lane = own and schedule_failure.schedule_id = pause_failing.schedule
        order by schedule_failure.failed_at desc, schedule_failure.run_id desc limit 1;
        why := case when failures = 1 then 'a run' else failures || ' runs in a row' end
            || ' ended without success; the last, ' || last_run::text || ', '
            || case last_state when 'dead' then 'is a dead letter' when 'lost' then 'was lost' else 'expired' end
            || coalesce(': ' || last_message, '');
        update cursor set due_at = null, revision = cursor.revision + 1
        where cursor.lane = own and cursor.schedule_id = pause_failing.schedule;
        update schedule
        set state = 'paused', paused_at = clock_now(), paused_by = pause_failing.actor, pause_reason = why,
            paused_until = null
        where schedule.lane = own and schedule.id = pause_failing.schedule;
        insert into audit (lane, tenant_id, actor, action, subject, detail)
        values (own, its_tenant, pause_failing.actor, 'schedule.pause', pause_failing.schedule::text,
                jsonb_build_object('reason', why, 'failures', failures, 'run', last_run));
    end if;
    update schedule_failure set has_reached = false   -- it was looked at
    where schedule_failure.lane = own and schedule_failure.schedule_id = pause_failing.schedule
      and schedule_failure.has_reached;
    return coalesce(failures >= its_limit, false);
end $$;

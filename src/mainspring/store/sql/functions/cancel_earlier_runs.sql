-- End the earlier runs of schedules of one lane whose next ones are due: those that wait at once, those that run are asked to
-- stop. One that moves while we look is found the next time; if it is not, it is waited for.
create or replace function cancel_earlier_runs(lane int, schedules uuid[]) returns void
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    own smallint := cancel_earlier_runs.lane::smallint;
    why text := 'The next run of its schedule is due, and cancels it.';
    its_tenant int;
    its_name text;
    its_runs uuid[];
    running uuid[];
    asked uuid[] := '{}';
    this uuid;
begin
    for look in 1 .. 3 loop
        for its_tenant, its_name, its_runs in
            select schedule.tenant_id, schedule.name, array(
                select schedule_run.run_id from schedule_run
                where schedule_run.lane = own and schedule_run.schedule_id = schedule.id and not schedule_run.is_dead)
            from schedule
            where schedule.lane = own and schedule.id = any (cancel_earlier_runs.schedules) order by schedule.id
        loop
            perform cancel_runs(own, its_runs, its_tenant, 'schedule ' || its_name, why, '{}');
        end loop;
        running := array(
            select schedule_run.run_id from schedule_run
            where schedule_run.lane = own and schedule_run.schedule_id = any (cancel_earlier_runs.schedules)
              and not schedule_run.is_dead and schedule_run.run_id <> all (asked));
        exit when cardinality(running) = 0;
        perform from lease   -- all at first, in the order in which everybody locks leases: no waiting in a circle
        where lease.lane = own and lease.ids && running
        order by lease.id for update;
        foreach this in array running loop
            update lease set cancel = set_bit(lease.cancel, array_position(lease.ids, this) - 1, 1)
            where lease.lane = own and lease.ids @> array[this]
              and get_bit(lease.done, array_position(lease.ids, this) - 1) = 0;
            if found then
                asked := asked || this;
                insert into audit (lane, tenant_id, actor, action, subject, detail)
                select own, schedule.tenant_id, 'schedule ' || schedule.name, 'run.cancel', schedule_run.run_id::text,
                       jsonb_build_object('reason', why)
                from schedule_run join schedule on schedule.lane = own and schedule.id = schedule_run.schedule_id
                where schedule_run.lane = own and schedule_run.run_id = this;
            end if;
        end loop;
    end loop;
end $$;

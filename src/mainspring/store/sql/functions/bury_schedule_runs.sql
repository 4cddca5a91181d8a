-- Runs of schedules are among the dead letters, and history says so: nobody waits for them, unless they are requeued. Where
-- failures in a row count, each is one.
create or replace function bury_schedule_runs(lane smallint, runs uuid[]) returns void
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    its_run uuid;
    its_schedule uuid;
    its_limit int;
begin
    for its_run, its_schedule, its_limit in
        update schedule_run set is_dead = true
        where schedule_run.lane = bury_schedule_runs.lane and schedule_run.run_id = any (bury_schedule_runs.runs)
        returning schedule_run.run_id, schedule_run.schedule_id, schedule_run.pause_after
    loop
        if its_limit is not null then
            perform note_failure(bury_schedule_runs.lane, its_schedule, its_run, its_limit, 'dead');
        end if;
    end loop;
end $$;

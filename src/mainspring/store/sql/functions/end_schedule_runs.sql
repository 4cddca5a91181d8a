-- Runs of schedules have ended, and history says how: whoever waits for that need not any more. Where failures in a row
-- count, a success sets the count back; a run that expired or was lost counts, one that somebody cancelled does not.
-- One schedule after the other, in one order for everybody: no waiting in a circle.
create or replace function end_schedule_runs(lane smallint, runs uuid[]) returns void
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    its_run uuid;
    its_schedule uuid;
    its_limit int;
    its_end run_state;
begin
    for its_run, its_schedule, its_limit in
        select schedule_run.run_id, schedule_run.schedule_id, schedule_run.pause_after from schedule_run
        where schedule_run.lane = end_schedule_runs.lane and schedule_run.run_id = any (end_schedule_runs.runs)
          and schedule_run.pause_after is not null
        order by schedule_run.schedule_id, schedule_run.run_id
    loop
        select attempt.state into its_end
        from attempt
        where attempt.lane = end_schedule_runs.lane and attempt.run_id = its_run
          and attempt.recorded_at >= clock_now() - interval '1 hour' and attempt.state in ({ends})
        order by attempt.recorded_at desc limit 1;
        if its_end = 'succeeded' then
            delete from schedule_failure
            where schedule_failure.lane = end_schedule_runs.lane and schedule_failure.schedule_id = its_schedule;
        elsif its_end in ('expired', 'lost') then
            perform note_failure(end_schedule_runs.lane, its_schedule, its_run, its_limit, its_end);
        end if;
    end loop;
    delete from schedule_run
    where schedule_run.lane = end_schedule_runs.lane and schedule_run.run_id = any (end_schedule_runs.runs);
end $$;

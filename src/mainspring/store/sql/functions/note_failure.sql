-- A run of a schedule ended without success, or is a dead letter: a row for each such run since the last success. If there
-- are as many as pause the schedule, the last says so. Two at once may not see each other: whoever fires next counts.
create or replace function note_failure(lane smallint, schedule uuid, run uuid, pause_after int, state run_state) returns void
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    its_message text;
    others bigint;
begin
    select attempt.error ->> 'message' into its_message
    from attempt
    where attempt.lane = note_failure.lane and attempt.run_id = note_failure.run
      and attempt.recorded_at >= clock_now() - interval '1 hour' and attempt.state = note_failure.state
    order by attempt.recorded_at desc limit 1;
    select count(*) into others
    from schedule_failure
    where schedule_failure.lane = note_failure.lane and schedule_failure.schedule_id = note_failure.schedule
      and schedule_failure.run_id <> note_failure.run;
    insert into schedule_failure (lane, schedule_id, run_id, state, message, has_reached)
    values (note_failure.lane, note_failure.schedule, note_failure.run, note_failure.state, left(its_message, 500),
            others + 1 >= note_failure.pause_after)
    on conflict (lane, schedule_id, run_id) do update
    set state = excluded.state, message = excluded.message, failed_at = excluded.failed_at,
        has_reached = excluded.has_reached;
end $$;

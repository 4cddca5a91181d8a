-- All that has to happen when runs end, besides their row of history: every way to an end comes through here.
create or replace function end_runs(lane smallint, runs uuid[]) returns void
language plpgsql set search_path = mainspring, pg_temp as $$
begin
    perform free_slots(end_runs.lane, end_runs.runs, 'succeeded');
    perform tell_children(end_runs.lane, end_runs.runs);
    perform end_schedule_runs(end_runs.lane, end_runs.runs);
    perform tell_chains(end_runs.lane, end_runs.runs);
end $$;

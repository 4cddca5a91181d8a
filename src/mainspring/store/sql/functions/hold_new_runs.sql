-- Let runs wait for others that were made in this very transaction: nobody has seen them in line.
create or replace function hold_new_runs(lane smallint, runs uuid[]) returns void
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
begin
    insert into held (lane, {run}, reason)
    select lane, {run}, 'parent' from ready where ready.lane = hold_new_runs.lane and ready.id = any (hold_new_runs.runs);
    delete from ready where ready.lane = hold_new_runs.lane and ready.id = any (hold_new_runs.runs);
end $$;

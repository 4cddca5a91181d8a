-- Let entries be counted that a caller makes in its own transaction, by whoever locks their gates next. `entries` are pairs of
-- a gate of this lane and a run of any.
create or replace function add_uncounted(lane smallint, entries jsonb) returns void
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
begin
    insert into backlog_addition (lane, gate, run_id)
    select add_uncounted.lane, item.entry ->> 0, (item.entry ->> 1)::uuid
    from jsonb_array_elements(add_uncounted.entries) as item (entry);
end $$;

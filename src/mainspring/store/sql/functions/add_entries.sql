-- Write down which new runs of one lane wait under which caps: pairs of a gate and a run, in the order of their acceptance.
create or replace function add_entries(lane smallint, entries jsonb) returns void
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
begin
    insert into backlog_entry (lane, gate, place, run_id)
    select add_entries.lane, item.entry ->> 0, (date_part('epoch', statement_now()) * 1000000)::bigint + item.place,
           (item.entry ->> 1)::uuid
    from jsonb_array_elements(add_entries.entries) with ordinality as item (entry, place);
end $$;

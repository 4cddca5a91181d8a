-- Submissions with a key or a delay are made by a function of one lane: on Citus, one command to the node that has it. What
-- callers and older programs submit to several lanes at once goes through it lane by lane.
-- serves: 12
-- functions: f3889093e1e2c76f

-- Accept runs of several lanes by one statement: without a transaction around it, too, all of them are accepted or none. In
-- the order of lanes, as by everybody: so two batches with the same keys wait for each other instead of deadlocking.
create or replace function submit_runs(items jsonb, known jsonb, key_wait text)
returns table (ordinal int, run_id uuid, verdict text)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    objection text := objection_to(known);
    own smallint;
    its_items jsonb;
begin
    if objection is not null then
        return query
        select item.ordinal, null::uuid, objection from jsonb_to_recordset(items) as item (ordinal int);
        return;
    end if;
    for own, its_items in
        select (item ->> 'lane')::smallint, jsonb_agg(item) from jsonb_array_elements(items) as item group by 1 order by 1
    loop
        return query
        select answer.ordinal, answer.run_id, answer.verdict from submit_runs(own, its_items, null, key_wait) as answer;
    end loop;
end $$;

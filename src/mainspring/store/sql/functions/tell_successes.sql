-- Runs of one lane have succeeded, and this is what they returned (no results at all: all are null): note it for those that
-- wait for them. Answers who does.
-- Whoever waits for many of them is told by the row of the first, and the row of the second gets what all of them returned,
-- as `store/inputs.py` would do later from history; so of a large group little is left when its last run has ended. What has
-- succeeded stays so: nobody asks for the other rows again. That of the first is locked before they go: whoever forgets for
-- whom the child waited passes over it, and its news lead to what we leave here.
-- Too much to become arguments, or for one transaction: then it is told run by run. So are runs for which many children wait:
-- a child is looked up among all rows of its parents, which would take as long as the square of their number.
-- Rows are found by their parents (`is true` keeps the index of children out of it), and results in a hash: of a child that
-- waits for ten thousand runs, looking one by one would take as long as all the rest.
create or replace function tell_successes(lane smallint, runs uuid[], results bytea[]) returns uuid[]
language plpgsql set search_path = mainspring, pg_temp set enable_nestloop = off as $$
#variable_conflict use_column
declare
    child uuid;
    parents uuid[];
    bytes bigint;
    kept bigint := 0;
    places jsonb;
    together bytea;
begin
    for child, parents, bytes in
        select waiting.child_id, waiting.ended_parents, waiting.size
        from (
            select dependency.child_id, array_agg(dependency.parent_id order by dependency.parent_id) as ended_parents,
                   coalesce(sum(octet_length(ended.result) * jsonb_array_length(dependency.inputs)), 0) as size,
                   count(*) over () as children
            from unnest(tell_successes.runs, tell_successes.results) as ended (id, result)
            join dependency on dependency.parent_id = ended.id
            where dependency.lane = tell_successes.lane and dependency.parent_id = any (tell_successes.runs)
              and dependency.condition <> 'failure' and dependency.otherwise <> 'fail'
              and cardinality(tell_successes.runs) >= 16
            group by dependency.child_id having count(*) >= 16) as waiting
        where waiting.children <= 32
    loop
        continue when bytes > 262144 or kept + bytes > 8000000;
        kept := kept + bytes;
        perform from dependency
        where dependency.lane = tell_successes.lane and dependency.parent_id = any (parents[1:1])
          and (dependency.child_id = child) is true
        for update;
        continue when not found;   -- it waits no more

        with gone as (
            delete from dependency
            where dependency.lane = tell_successes.lane and dependency.parent_id = any (parents[3:])
              and (dependency.child_id = child) is true
            returning dependency.parent_id, dependency.inputs
        ), told as (
            select gone.parent_id, gone.inputs from gone
            union all
            select dependency.parent_id, dependency.inputs from dependency
            where dependency.lane = tell_successes.lane and dependency.parent_id = any (parents[1:2])
              and (dependency.child_id = child) is true
        )
        select jsonb_agg(place.path), '['::bytea || string_agg(coalesce(ended.result, 'null'), ',') || ']'::bytea
        into places, together
        from told join unnest(tell_successes.runs, tell_successes.results) as ended (id, result) on ended.id = told.parent_id
        cross join lateral jsonb_array_elements(told.inputs) as place (path);
        update dependency
        set is_news = dependency.parent_id = parents[1], has_ended = dependency.parent_id = parents[2], check_at = null,
            inputs = case when dependency.parent_id = parents[2] then places end,
            results = case when dependency.parent_id = parents[2] then together end
        where dependency.lane = tell_successes.lane and dependency.parent_id = any (parents[1:2])
          and (dependency.child_id = child) is true;
    end loop;
    return tell_children(tell_successes.lane, tell_successes.runs);
end $$;

-- Which of some lines of one lane, each with a priority, have more runs in line than their high mark says; or runs that wait
-- for that already, and whom nobody may overtake. A mark is for the whole queue: each lane has its part of it.
create or replace function beyond_marks(lane smallint, lines int[], priorities smallint[]) returns boolean[]
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    are_full boolean[];
begin
    are_full := array(
        -- In the order of the indexes: without statistics anything else would search the whole lane.
        select (select held.turn from held
                where held.lane = beyond_marks.lane
                  and held.gate = mark_gate(beyond_marks.lane, wanted.line_id, wanted.priority)
                order by held.gate, held.turn limit 1) is not null
            or (select ready.rank from ready
                where ready.lane = beyond_marks.lane and ready.line_id = wanted.line_id and ready.priority = wanted.priority
                  and ready.rank <= rank_bound()
                order by ready.rank offset mark.high - 1 limit 1) is not null
        from unnest(beyond_marks.lines, beyond_marks.priorities) with ordinality as wanted (line_id, priority, place)
        cross join lateral marks_of(wanted.line_id) as mark
        order by wanted.place);
    return are_full;
end $$;

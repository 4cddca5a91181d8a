-- How many of the runs that come to some lines of one lane, each with a priority, have room there: as many as are missing up to
-- its high mark, and none where others wait for that already, whom nobody may overtake. A mark is for the whole queue: each lane
-- has its part of it. What is staged takes room if `counts_staged` says so, and in queues that have been given marks: the usual
-- mark is there for what nobody thought of, and a herd that lies in line is claimed faster than one that is moved out and back.
create or replace function room_at_marks(
    lane smallint, lines int[], priorities smallint[], coming int[], counts_staged boolean
) returns int[]
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    have_marks boolean[];
    rooms int[];
begin
    if counts_staged then
        have_marks := array(
            select (select queue.high_mark from line
                    join queue on queue.tenant_id = line.tenant_id and queue.name = line.queue
                    where line.id = wanted.line_id) is not null
            from unnest(room_at_marks.lines) with ordinality as wanted (line_id, place) order by wanted.place);
    end if;
    rooms := array(
        -- In the order of the indexes: without statistics anything else would search the whole lane. Nearly always all have
        -- room, and the line is read no further than to see that.
        select case
            when (select held.turn from held
                  where held.lane = room_at_marks.lane
                    and held.gate = mark_gate(room_at_marks.lane, wanted.line_id, wanted.priority)
                  order by held.gate, held.turn limit 1) is not null then 0
            when wanted.runs <= mark.high
                 and (select ready.rank from ready
                      where ready.lane = room_at_marks.lane and ready.line_id = wanted.line_id
                        and ready.priority = wanted.priority
                        and ready.rank <= case when have_marks[wanted.place] then 9223372036854775807 else rank_bound() end
                      order by ready.rank offset greatest(0, mark.high - wanted.runs) limit 1) is null then wanted.runs end
        from unnest(room_at_marks.lines, room_at_marks.priorities, room_at_marks.coming) with ordinality
            as wanted (line_id, priority, runs, place)
        cross join lateral marks_of(wanted.line_id) as mark
        order by wanted.place);
    if array_position(rooms, null) is not null then   -- not for all of them: how many places are free?
        rooms := array(
            select coalesce(wanted.room, least(wanted.runs, mark.high - (
                select count(*)::int from (
                    select ready.rank from ready
                    where ready.lane = room_at_marks.lane and ready.line_id = wanted.line_id
                      and ready.priority = wanted.priority
                      and ready.rank <= case when have_marks[wanted.place] then 9223372036854775807 else rank_bound() end
                    order by ready.rank limit mark.high) as few)))
            from unnest(room_at_marks.lines, room_at_marks.priorities, room_at_marks.coming, rooms) with ordinality
                as wanted (line_id, priority, runs, room, place)
            cross join lateral marks_of(wanted.line_id) as mark
            order by wanted.place);
    end if;
    return rooms;
end $$;

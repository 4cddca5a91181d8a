-- Let runs of one lane come in line that wait because there were too many: where the line is down to its low mark, up to its
-- high mark; and in any case some of those that have waited longer than the first in line, whom others would overtake for ever.
-- They take the places that they would have had. Answers with what came in line at each gate, and whether more wait there.
create or replace function release_at_marks(lane smallint, gates text[])
returns table (gate text, line_id int, priority smallint, runs bigint, has_more boolean)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    its_gate text;
    its_line int;
    its_priority smallint;
    its_high int;
    its_low int;
    its_depth bigint;
    its_head bigint;
    its_room bigint;
    picked uuid[];
begin
    -- Each of several keepers would fill the whole room: one comes after the other, as in promote_runs.
    perform pg_advisory_xact_lock(1836253184 + release_at_marks.lane, 0);
    foreach its_gate in array release_at_marks.gates loop
        its_line := split_part(its_gate, '.', 2)::int;
        its_priority := split_part(its_gate, '.', 3)::smallint;
        select mark.high, mark.low into its_high, its_low from marks_of(its_line) as mark;
        select count(*), min(few.rank) into its_depth, its_head
        from (select ready.rank from ready
              where ready.lane = release_at_marks.lane and ready.line_id = its_line and ready.priority = its_priority
                and ready.rank <= rank_bound()
              order by ready.rank limit its_high) as few;
        its_room := case when its_depth <= its_low then its_high - its_depth else 0 end;
        picked := array(
            select held.id from held
            where held.lane = release_at_marks.lane and held.gate = its_gate
            order by held.gate, held.turn limit least(its_room, 1000) for update skip locked);
        if cardinality(picked) = 0 then
            picked := array(
                select held.id from held
                where held.lane = release_at_marks.lane and held.gate = its_gate and held.turn < its_head
                order by held.gate, held.turn limit least(its_high, 100) for update skip locked);
        end if;
        insert into ready (lane, {run}, rank)
        select lane, {run}, turn from held where held.lane = release_at_marks.lane and held.id = any (picked);
        delete from held where held.lane = release_at_marks.lane and held.id = any (picked);
        return query select its_gate, its_line, its_priority, cardinality(picked)::bigint,
            (select held.turn from held where held.lane = release_at_marks.lane and held.gate = its_gate
             order by held.gate, held.turn limit 1) is not null;
    end loop;
end $$;

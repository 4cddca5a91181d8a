-- What is promoted, or fired by schedules, comes in line at the pace of the workers: beyond a high mark per line and priority it
-- waits in `held`, until the line is down to a low mark.
-- Programs of before go on: their keepers let such runs pass at once.
-- serves: 12
-- functions: 0b66fef8eb569b12

alter table queue
    add column high_mark int constraint a_high_mark_is_positive check (high_mark > 0),   -- null: as always
    add column low_mark int constraint a_low_mark_is_below_the_high_one check (low_mark >= 0 and low_mark < high_mark);

-- The marks of a line, as each lane has its part of them: beyond the high one nothing more is promoted, and below the low one it
-- is again.
create function marks_of(line int, out high int, out low int) language sql stable as $$
    select greatest(1, ceil(coalesce(queue.high_mark, 20000)::numeric / lanes.number))::int,
           floor(coalesce(queue.low_mark, coalesce(queue.high_mark, 20000) / 2)::numeric / lanes.number)::int
    from (select value::int as number from mainspring.setting where name = 'lanes') as lanes
    join mainspring.line on line.id = marks_of.line
    left join mainspring.queue on queue.tenant_id = line.tenant_id and queue.name = line.queue
$$;

-- At which gate runs wait that come to a line of one lane beyond its high mark: `-1:` and lane, line and priority.
create function mark_gate(lane smallint, line int, priority smallint) returns text language sql immutable parallel safe as $$
    select '-1:' || lane::text || '.' || line::text || '.' || priority::text
$$;

-- What the rules about overlap make of instants that are to fire, one for each schedule of one lane: the runs that are not
-- made (`skipped`), and those that are made and wait for earlier ones (`waiting`). Whoever calls holds the cursors, so nobody
-- else makes runs of these schedules; which of their runs have not ended is read, not remembered. One that ends at this
-- moment may still be seen: then the new one waits, and whoever releases runs finds it.
create or replace function decide_overlaps(
    lane int, schedules uuid[], rules text[], instants timestamptz[], runs uuid[]
) returns table (skipped uuid[], waiting uuid[])
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    own smallint := decide_overlaps.lane::smallint;
    place int;
    known uuid[];
    cancelling uuid[];
    earlier uuid[];
    buffered uuid[];
    to_skip uuid[] := '{}';
    to_wait uuid[] := '{}';
begin
    -- An instant that has a run gets no other, and meets nobody.
    known := array(
        select item.run_id
        from unnest(decide_overlaps.schedules, decide_overlaps.rules, decide_overlaps.instants, decide_overlaps.runs)
            as item (schedule_id, rule, nominal_at, run_id)
        where item.rule <> 'allow' and coalesce(
            (select occurrence.run_id from occurrence
             where occurrence.lane = own and occurrence.schedule_id = item.schedule_id
               and occurrence.nominal_at = item.nominal_at limit 1),
            (select occurrence_past.run_id from occurrence_past
             where occurrence_past.lane = own and occurrence_past.schedule_id = item.schedule_id
               and occurrence_past.nominal_at = item.nominal_at limit 1)) is not null);
    cancelling := array(
        select item.schedule_id
        from unnest(decide_overlaps.schedules, decide_overlaps.rules, decide_overlaps.runs) as item (schedule_id, rule, run_id)
        where item.rule = 'cancel_other' and item.run_id is not null and item.run_id <> all (known));
    perform cancel_earlier_runs(decide_overlaps.lane, cancelling) where cardinality(cancelling) > 0;
    for place in 1 .. cardinality(decide_overlaps.schedules) loop
        continue when decide_overlaps.rules[place] = 'allow' or decide_overlaps.instants[place] is null
            or decide_overlaps.runs[place] = any (known);
        earlier := array(
            select schedule_run.run_id from schedule_run
            where schedule_run.lane = own and schedule_run.schedule_id = decide_overlaps.schedules[place]
              and not schedule_run.is_dead);
        continue when cardinality(earlier) = 0;
        buffered := array(
            select held.id from held
            where held.lane = own and held.gate = '0!:' || decide_overlaps.schedules[place]::text
            order by held.gate, held.turn limit 1);
        if decide_overlaps.rules[place] = 'skip' or decide_overlaps.rules[place] = 'buffer_one' and cardinality(buffered) > 0
        then
            to_skip := to_skip || decide_overlaps.runs[place];
        else
            to_wait := to_wait || decide_overlaps.runs[place];
        end if;
    end loop;
    return query select to_skip, to_wait;
end $$;

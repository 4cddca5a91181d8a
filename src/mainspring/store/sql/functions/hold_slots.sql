-- Give back those slots of runs that go to wait at gates which they may not keep meanwhile: of gates that are no longer
-- theirs, and of those behind the first at which they have to wait. Else two could each hold what the other waits for.
create or replace function hold_slots(lane smallint, runs uuid[], gates text[]) returns void
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    number int;
    place int;
    wanted text[];
    kept text[];
begin
    for number in 1 .. cardinality(runs) loop
        wanted := string_to_array(hold_slots.gates[number], E'\n');
        kept := '{}';
        for place in 1 .. cardinality(wanted) loop
            exit when not exists (
                select from slot
                where slot.lane = hold_slots.lane and slot.run_id = hold_slots.runs[number]
                  and slot.gate is not distinct from wanted[place]);
            kept := kept || wanted[place];
        end loop;
        delete from slot
        where slot.lane = hold_slots.lane and slot.run_id = hold_slots.runs[number] and slot.gate <> all (kept);
    end loop;
end $$;

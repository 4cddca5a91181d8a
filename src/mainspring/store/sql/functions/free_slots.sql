-- Give back the slots of runs that leave the line or their lease for `state`. One that waits for another attempt keeps those
-- of strict order, and a dead letter those that it halts.
create or replace function free_slots(lane smallint, runs uuid[], state run_state) returns void
language plpgsql set search_path = mainspring, pg_temp as $$
begin
    delete from slot
    where slot.lane = free_slots.lane and slot.run_id = any (free_slots.runs)
      and case when free_slots.state = 'dead' then not slot.halts_on_dead
               when free_slots.state in ('scheduled', 'held') then not slot.is_strict
               else true end;
end $$;

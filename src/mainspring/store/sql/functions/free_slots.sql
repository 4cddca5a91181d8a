-- Give back the slots of runs that leave the line or their lease for `state`. One that waits for another attempt keeps those
-- of strict order and of all narrower gates, which it has passed before: else two could each hold what the other waits for.
-- A dead letter keeps those that it halts; nobody waits for it otherwise.
create or replace function free_slots(lane smallint, runs uuid[], state run_state) returns void
language plpgsql set search_path = mainspring, pg_temp as $$
begin
    if free_slots.state = 'dead' then
        delete from slot
        where slot.lane = free_slots.lane and slot.run_id = any (free_slots.runs) and not slot.halts_on_dead;
        perform bury_schedule_runs(free_slots.lane, free_slots.runs);
    elsif free_slots.state in ('scheduled', 'held') then
        delete from slot
        where slot.lane = free_slots.lane and slot.run_id = any (free_slots.runs)
          and slot.place > coalesce((
              select max(kept.place) from slot as kept
              where kept.lane = free_slots.lane and kept.run_id = slot.run_id and kept.is_strict), 0);
    else
        delete from slot where slot.lane = free_slots.lane and slot.run_id = any (free_slots.runs);
    end if;
end $$;

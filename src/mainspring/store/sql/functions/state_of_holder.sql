-- Where a run of one lane is, as far as its unique key is concerned: 'waiting', 'running' (also while it
-- waits for its children: its handler has returned), 'dead', or null if it is over. One
-- statement, and so one snapshot: a run that moves meanwhile is seen once.
create or replace function state_of_holder(lane smallint, holder uuid) returns text
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    state text;
begin
    select case
        when exists (select from ready where ready.lane = state_of_holder.lane and ready.id = holder)
          or exists (select from later where later.lane = state_of_holder.lane and later.id = holder)
          or exists (select from held where held.lane = state_of_holder.lane and held.id = holder
                                        and held.reason <> 'children') then 'waiting'
        when exists (select from lease
                     where lease.lane = state_of_holder.lane and lease.ids @> array[holder]
                       and get_bit(lease.done, array_position(lease.ids, holder) - 1) = 0)
          or exists (select from held where held.lane = state_of_holder.lane and held.id = holder) then 'running'
        when exists (select from dead where dead.lane = state_of_holder.lane and dead.id = holder) then 'dead' end
    into state
    from lane where lane.lane = state_of_holder.lane;
    return state;
end $$;

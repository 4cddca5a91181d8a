-- Remove entries of some gates whose runs in one lane do not wait for their first start any more: of each gate the oldest, up
-- to so many. A run that was claimed once has a fence; one that is over is nowhere. Answers how many went.
create or replace function clear_entries(lane smallint, gates text[], count int)
returns table (gate text, cleared bigint)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    own_gate text;
    gone_places bigint[];
    gone_runs uuid[];
    removed bigint;
begin
    foreach own_gate in array clear_entries.gates loop
        select array_agg(entry.place), array_agg(entry.run_id) into gone_places, gone_runs
        from (select backlog_entry.place, backlog_entry.run_id from backlog_entry
              where backlog_entry.lane = clear_entries.lane and backlog_entry.gate = own_gate
              order by backlog_entry.gate, backlog_entry.place limit clear_entries.count) as entry
        -- One look-up each, by the primary key, whatever statistics say.
        where (select true from ready
               where ready.lane = clear_entries.lane and ready.id = entry.run_id and ready.fence = 0 limit 1) is null
          and (select true from later
               where later.lane = clear_entries.lane and later.id = entry.run_id and later.fence = 0 limit 1) is null
          and (select true from held
               where held.lane = clear_entries.lane and held.id = entry.run_id and held.fence = 0 limit 1) is null;
        if gone_runs is not null then
            delete from backlog_entry
            where backlog_entry.lane = clear_entries.lane and backlog_entry.gate = own_gate
              and backlog_entry.place = any (gone_places) and backlog_entry.run_id = any (gone_runs);
            get diagnostics removed = row_count;
            return query select own_gate, removed;
        end if;
    end loop;
end $$;

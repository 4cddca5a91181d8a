-- Look at the entries of one gate in one lane, after a given one and up to so many, and remove those whose runs do not wait for
-- their first start any more. A run that was claimed once has a fence; one that is over is nowhere. Answers how many went, and
-- with the last one if there may be more.
create or replace function clear_entries(
    lane smallint, its_gate text, after_place bigint, after_run uuid, count int,
    out cleared bigint, out last_place bigint, out last_run uuid)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    places bigint[];
    runs uuid[];
begin
    select array_agg(entry.place order by entry.place, entry.run_id),
           array_agg(entry.run_id order by entry.place, entry.run_id)
    into places, runs
    from (select backlog_entry.place, backlog_entry.run_id from backlog_entry
          where backlog_entry.lane = clear_entries.lane and backlog_entry.gate = its_gate
            and (backlog_entry.place, backlog_entry.run_id) > (clear_entries.after_place, clear_entries.after_run)
          order by backlog_entry.gate, backlog_entry.place, backlog_entry.run_id limit clear_entries.count) as entry;
    if cardinality(places) = clear_entries.count then
        last_place := places[clear_entries.count];
        last_run := runs[clear_entries.count];
    end if;
    select array_agg(entry.place), array_agg(entry.run_id) into places, runs
    from unnest(places, runs) as entry (place, run_id)
    -- One look-up each, by the primary key, whatever statistics say.
    where (select true from ready
           where ready.lane = clear_entries.lane and ready.id = entry.run_id and ready.fence = 0 limit 1) is null
      and (select true from later
           where later.lane = clear_entries.lane and later.id = entry.run_id and later.fence = 0 limit 1) is null
      and (select true from held
           where held.lane = clear_entries.lane and held.id = entry.run_id and held.fence = 0 limit 1) is null;
    cleared := coalesce(cardinality(runs), 0);
    if cleared > 0 then
        delete from backlog_entry
        where backlog_entry.lane = clear_entries.lane and backlog_entry.gate = its_gate
          and backlog_entry.place = any (places) and backlog_entry.run_id = any (runs);
        get diagnostics cleared = row_count;
    end if;
end $$;

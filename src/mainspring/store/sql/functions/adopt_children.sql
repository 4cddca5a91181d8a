-- A handler has submitted runs in this transaction, or found that it had before: they are children of its run, which waits for
-- them once the handler has returned. Only while the run is the handler's: its lease is locked, so that whoever settles or
-- rescues it comes before or after. The run is marked where it is leased, so that a later attempt at it knows of them.
-- It also waits for itself: for its handler to return. That row stays for as long as it has children, and is told of its end.
-- Answers `adopted`, `lost` (another worker has the run, or it has ended) or `cancelled` (it was asked to stop).
create or replace function adopt_children(
    lane smallint, tenant int, run uuid, lease uuid, place int, worker uuid, children uuid[], are_new boolean[], condition text
) returns text language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    is_asked_to_stop boolean;
    is_marked boolean;
begin
    select get_bit(lease.cancel, adopt_children.place) = 1, coalesce((lease.runs[adopt_children.place + 1]).headers ? '@children', false)
    into is_asked_to_stop, is_marked
    from lease
    where lease.lane = adopt_children.lane and lease.id = adopt_children.lease and lease.worker_id = adopt_children.worker
      and lease.ids[adopt_children.place + 1] = adopt_children.run and get_bit(lease.done, adopt_children.place) = 0
      and (lease.runs[adopt_children.place + 1]).tenant_id = adopt_children.tenant
    for no key update;
    if not found then
        return 'lost';
    end if;
    if is_asked_to_stop then
        return 'cancelled';
    end if;
    if not is_marked then
        update lease
        set runs[adopt_children.place + 1].headers =
                coalesce((lease.runs[adopt_children.place + 1]).headers, '{}') || '{"@children": "1"}'
        where lease.lane = adopt_children.lane and lease.id = adopt_children.lease;
    end if;
    insert into dependency (lane, parent_id, child_id, lanes, condition, otherwise)
    values (adopt_children.lane, adopt_children.run, adopt_children.run, array[adopt_children.lane], 'end', 'fail')
    on conflict do nothing;
    insert into dependency (lane, parent_id, child_id, lanes, condition, otherwise, check_at, checks)
    select adopt_children.lane, child.id, adopt_children.run, array[adopt_children.lane], adopt_children.condition, 'fail',
           case when child.is_new then clock_now() + interval '10 minutes' else clock_now() end,
           case when child.is_new then 10 else 0 end
    from unnest(adopt_children.children, adopt_children.are_new) as child (id, is_new)
    on conflict (lane, parent_id, child_id) do update   -- an earlier attempt has submitted it, and it had to end otherwise
    set condition = excluded.condition, is_news = false, has_ended = false, check_at = clock_now(), checks = 0
    where dependency.condition <> excluded.condition;
    return 'adopted';
end $$;

-- Take so many places of each of some gates of one lane, in backlogs that have a cap, where there are enough; a gate stays
-- locked until COMMIT, whether there are or not. In one order, so that nobody waits in a circle. Answers how each stands; no
-- cap: it is gone by now.
create or replace function take_places(lane smallint, gates text[], counts int[])
returns table (gate text, scope text, name text, key text, tenant_id int, most int, when_full text, counted int, checked int,
               is_taken boolean, was_full boolean)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    own_gate text;
    wanted int;
    so_far int;
    when_checked int;
    full_before timestamptz;
    added int;
    cap_most int;
begin
    for own_gate, wanted in
        select item.gate, item.count from unnest(take_places.gates, take_places.counts) as item (gate, count)
        order by item.gate collate "C"
    loop
        loop
            insert into backlog_gate (lane, gate, tidy_at)
            values (take_places.lane, own_gate, clock_now() + interval '1 minute') on conflict do nothing;
            select backlog_gate.counted, backlog_gate.checked, backlog_gate.full_until
            into so_far, when_checked, full_before from backlog_gate
            where backlog_gate.lane = take_places.lane and backlog_gate.gate = own_gate for update;
            exit when found;   -- else the keeper has just cleared it away
        end loop;
        with counted_now as (
            delete from backlog_addition
            where backlog_addition.lane = take_places.lane and backlog_addition.gate = own_gate
            returning backlog_addition.run_id)
        select count(*) into added from counted_now;
        so_far := so_far + added;
        select backlog_cap.most into cap_most from backlog_cap where backlog_cap.id = split_part(own_gate, ':', 1)::int;
        if cap_most is null or so_far + wanted > cap_most then
            wanted := 0;
        end if;
        if added + wanted > 0 then
            update backlog_gate set counted = so_far + wanted
            where backlog_gate.lane = take_places.lane and backlog_gate.gate = own_gate;
        end if;
        return query
        select own_gate, backlog_cap.scope, backlog_cap.name, backlog_cap.key, backlog_cap.tenant_id, backlog_cap.most,
               backlog_cap.when_full, so_far + wanted, when_checked, wanted > 0, coalesce(full_before > clock_now(), false)
        from backlog_cap where backlog_cap.id = split_part(own_gate, ':', 1)::int;
    end loop;
end $$;

-- Let runs of one lane go on that were held until others had ended: to their limits, in line, or to wait until they are due.
-- Their arguments have the results of those by now: `payloads`, null where nothing changes. One that somebody is changing
-- just now stays. Which arguments they awaited (`model/template.py`) is forgotten. Answers with those that went, and where they are to be looked for.
create or replace function release_children(lane smallint, runs uuid[], payloads bytea[])
returns table (run_id uuid, line_id int, priority smallint, gate text, is_due boolean)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    picked uuid[];
    at_gates uuid[];
begin
    picked := array(
        select held.id from held
        where held.lane = release_children.lane and held.id = any (release_children.runs) and held.reason = 'parent'
        for update skip locked);
    if cardinality(picked) = 0 then
        return;
    end if;
    at_gates := array(
        select held.id from held
        where held.lane = release_children.lane and held.id = any (picked) and held.gates is not null
          and held.due_at <= clock_now());

    insert into ready (lane, {run except payload, headers}, headers, payload)
    select lane, {run except payload, headers}, nullif(held.headers - 'awaits', '{}'),
           coalesce(release_children.payloads[array_position(release_children.runs, held.id)], held.payload)
    from held where held.lane = release_children.lane and held.id = any (picked) and held.gates is null
      and held.due_at <= clock_now();
    insert into later (lane, {run except payload, headers}, headers, payload, gates)
    select lane, {run except payload, headers}, nullif(held.headers - 'awaits', '{}'),
           coalesce(release_children.payloads[array_position(release_children.runs, held.id)], held.payload), held.gates
    from held where held.lane = release_children.lane and held.id = any (picked) and held.due_at > clock_now();
    return query
    select held.id, held.line_id, held.priority, split_part(held.gates, E'\n', 1), held.due_at <= clock_now()
    from held where held.lane = release_children.lane and held.id = any (picked);

    delete from held
    where held.lane = release_children.lane and held.id = any (picked) and held.id <> all (at_gates);
    update held
    set reason = 'limit', gate = split_part(held.gates, E'\n', 1), held_at = clock_now(),
        turn = turn_of(split_part(held.gates, E'\n', 1), held.priority, held.submitted_at),
        headers = nullif(held.headers - 'awaits', '{}'),
        payload = coalesce(release_children.payloads[array_position(release_children.runs, held.id)], held.payload)
    where held.lane = release_children.lane and held.id = any (at_gates);
end $$;

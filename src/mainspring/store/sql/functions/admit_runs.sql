-- Let runs of one lane pass the gates at which they wait: each takes a slot there, unless the limit is gone, and goes on to
-- its next gate, or in line. Whoever calls holds the lock of the gates, and has counted. A run that somebody is changing
-- just now stays; where order is strict, so do those behind it. `released_at` is the instant by which tokens were counted.
-- Answers with what passed, and to where.
create or replace function admit_runs(
    lane smallint, runs uuid[], passed text[], is_known boolean[], takes_slot boolean[], strict boolean[],
    halting boolean[], released_at double precision
) returns table (run_id uuid, line_id int, priority smallint, next_gate text)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    found_ids uuid[];
    blocked text[];
    strangers uuid[];
    next_lists text[];
    moved_ids uuid[];
    next_gates text[];
    next_turns bigint[];
begin
    found_ids := array(
        select held.id from held
        where held.lane = admit_runs.lane and held.id = any (admit_runs.runs)
          and held.gate = admit_runs.passed[array_position(admit_runs.runs, held.id)]
        for update skip locked);
    if cardinality(found_ids) < cardinality(admit_runs.runs) then
        blocked := array(
            select run.gate from unnest(admit_runs.runs, admit_runs.passed, admit_runs.strict) as run (id, gate, is_strict)
            where run.is_strict and run.id <> all (found_ids));
        found_ids := array(
            select run.id from unnest(admit_runs.runs, admit_runs.passed) as run (id, gate)
            where run.id = any (found_ids) and run.gate <> all (blocked));
    end if;
    if cardinality(found_ids) = 0 then
        return;
    end if;

    insert into slot (lane, run_id, rule_id, gate, place, is_strict, halts_on_dead)
    select admit_runs.lane, run.id, rtrim(split_part(run.gate, ':', 1), '!=')::int, run.gate,
           (select array_position(string_to_array(held.gates, E'\n'), run.gate) from held
            where held.lane = admit_runs.lane and held.id = run.id),
           run.is_strict, run.halts
    from unnest(admit_runs.runs, admit_runs.passed, admit_runs.takes_slot, admit_runs.strict, admit_runs.halting)
        as run (id, gate, takes, is_strict, halts)
    where run.takes and run.id = any (found_ids)
    on conflict (lane, run_id, rule_id) do update   -- it kept the slot while it waited for another attempt
    set gate = excluded.gate, place = excluded.place, halts_on_dead = excluded.halts_on_dead;

    -- A limit that is gone leaves no trace: whoever claims such a run sees that it has not passed it.
    strangers := array(
        select run.id from unnest(admit_runs.runs, admit_runs.is_known) as run (id, is_known)
        where not run.is_known and run.id = any (found_ids));
    insert into ready (lane, {run}, gates, ready_at)
    select lane, {run},
           case when held.id <> all (strangers) then held.gates
                else nullif(array_to_string(array_remove(string_to_array(held.gates, E'\n'), held.gate), E'\n'), '') end,
           to_timestamp(admit_runs.released_at)
    from held
    where held.lane = admit_runs.lane and held.id = any (found_ids) and gate_after(held.gates, held.gate) is null;
    return query
    with gone as (
        delete from held
        where held.lane = admit_runs.lane and held.id = any (found_ids) and gate_after(held.gates, held.gate) is null
        returning held.id, held.line_id, held.priority)
    select gone.id, gone.line_id, gone.priority, null::text from gone;
    select array_agg(held.id), array_agg(gate_after(held.gates, held.gate)),
           array_agg(case when held.id <> all (strangers) then held.gates
                          else array_to_string(array_remove(string_to_array(held.gates, E'\n'), held.gate), E'\n') end),
           array_agg(coalesce(   -- if it kept its slot there, it comes before all others
                        (select 0::bigint from slot
                         where slot.lane = admit_runs.lane and slot.run_id = held.id
                           and slot.gate is not distinct from gate_after(held.gates, held.gate) limit 1),
                        turn_of(gate_after(held.gates, held.gate), held.priority, held.submitted_at)))
    into moved_ids, next_gates, next_lists, next_turns
    from held where held.lane = admit_runs.lane and held.id = any (found_ids);   -- those that are still there
    if moved_ids is null then
        return;
    end if;
    update held set reason = 'limit', gates = moved.gates, gate = moved.gate, turn = moved.turn
    from unnest(moved_ids, next_lists, next_gates, next_turns) as moved (id, gates, gate, turn)
    where held.lane = admit_runs.lane and held.id = moved.id;
    return query
    select held.id, held.line_id, held.priority, held.gate
    from held where held.lane = admit_runs.lane and held.id = any (moved_ids);
end $$;

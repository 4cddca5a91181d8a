-- Accept runs of one lane, for now or for later; answers with one row per item: the run that stands for it, and whether it
-- is new, was there before (same key, same content; or it holds the unique key: see take_unique_key) or is refused (same key,
-- other content; or the client's numbers are not this database's). Locks nothing shared. `key_wait` is how long to wait for a key that an open transaction uses; null: as
-- the session says. `known` is what the client takes for granted; null: it was compared in this transaction.
create or replace function submit_runs(lane smallint, items jsonb, known jsonb, key_wait text)
returns table (ordinal int, run_id uuid, verdict text)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    objection text := case when known is not null then objection_to(known) end;
    usual_wait text := current_setting('lock_timeout');
    ordinals int[];
    ids uuid[];
    digests bytea[];
    runs run_row[];
    run_gates text[];
    run_waits boolean[];
    wishes jsonb[];
    has_keys boolean;
    has_wishes boolean;
    has_ready boolean;
    has_later boolean;
    has_held boolean;
    has_waiting boolean;
    item_ordinal int;
    item_tenant int;
    item_key text;
    item_run uuid;
    item_digest bytea;
    kept_run uuid;
    kept_digest bytea;
    item_place int;
    item_verdict text;
    not_new uuid[] := '{}';
begin
    if objection is not null then
        return query
        select item.ordinal, null::uuid, objection from jsonb_to_recordset(items) as item (ordinal int);
        return;
    end if;
    if key_wait is not null then
        perform set_config('lock_timeout', key_wait, true);
    end if;

    -- What the items say is read once, not once per statement.
    select array_agg(item.ordinal), array_agg(item.id), array_agg(decode(item.digest, 'base64')),
           bool_or(item.key is not null), array_agg(item.wish), bool_or(item.wish is not null),
           bool_or(item.due_at <= clock_now() and item.gates is null and item.waits is null),
           bool_or(item.due_at > clock_now() and item.waits is null),
           bool_or(item.due_at <= clock_now() and item.gates is not null and item.waits is null),
           bool_or(item.waits), array_agg(item.waits), array_agg(item.gates),
           array_agg(run_of(
               id => item.id, tenant_id => item.tenant_id, job_id => item.job_id, job_version => item.job_version,
               line_id => item.line_id, priority => item.priority, attempt => 0::smallint, fence => 0,
               crashes => 0::smallint, revision => 0, due_at => item.due_at,
               expires_at => item.due_at + least(item.max_age, item.start_within) * interval '1 second',
               codec => item.codec, payload => decode(item.payload, 'base64'),
               headers => case when item.wish is null then item.headers
                   else coalesce(item.headers, '{}')
                        || jsonb_build_object('@unique', concat(item.wish ->> 'rule', ' ', item.wish ->> 'key')) end,
               tags => item.tags, idempotency_key => item.key, submitted_by => item.submitted_by,
               -- At gates with strict order they take turns by it: those of a batch in its order, and several batches of
               -- one transaction in theirs.
               submitted_at => case when item.gates is null then clock_now()
                   else statement_now() + item.ordinal * interval '1 microsecond' end,
               ready_at => null,
               retry_until => item.due_at + item.max_age * interval '1 second', first_started_at => null,
               overrides => item.overrides))
    into ordinals, ids, digests, has_keys, wishes, has_wishes, has_ready, has_later, has_held, has_waiting, run_waits,
         run_gates, runs
    from (
        select item.*, coalesce(item.at, clock_now() + coalesce(item.delay, 0) * interval '1 second') as due_at
        from jsonb_to_recordset(items) as item (
            ordinal int, id uuid, tenant_id int, job_id int, job_version int, line_id int, priority smallint,
            at timestamptz, delay double precision, max_age double precision, start_within double precision,
            overrides jsonb, codec smallint, payload text, headers jsonb, tags text[], key text, digest text,
            submitted_by text, gates text, waits boolean, wish jsonb)) as item;

    if has_keys then
        -- Sorted, so that two batches with the same keys wait for each other instead of deadlocking. One by one: which of
        -- them are new is known only of what was inserted. A run that is sent again, since the answer to its COMMIT was
        -- lost, finds its own key.
        for item_ordinal, item_tenant, item_key, item_run, item_digest in
            select item.ordinal, item.tenant_id, item.idempotency_key, item.id, item.digest
            from rows from (unnest(ordinals), unnest(digests), unnest(runs)) as item (ordinal, digest)
            where item.idempotency_key is not null order by item.idempotency_key
        loop
            insert into idempotency (lane, tenant_id, key, run_id, digest)
            values (submit_runs.lane, item_tenant, item_key, item_run, item_digest)
            on conflict do nothing;
            if not found then
                -- A statement of its own: who holds the key may have committed after the first one took its snapshot. In
                -- order, which the primary key alone has: with `=`, planned while the table was empty, it could read all
                -- keys of the lane for ever.
                select idempotency.run_id, idempotency.digest into kept_run, kept_digest from idempotency
                where idempotency.lane = submit_runs.lane and idempotency.tenant_id = item_tenant
                  and idempotency.key between item_key and item_key
                order by idempotency.key limit 1;
                not_new := not_new || item_run;
                return query
                select item_ordinal, kept_run, case when kept_run is null then 'gone'
                                                    when kept_digest = item_digest then 'same'
                                                    else 'conflict' end;
            end if;
        end loop;
    end if;

    if has_wishes then   -- in one order, too; no two of a batch have the same
        for item_place in
            select wanted.place from unnest(wishes) with ordinality as wanted (wish, place)
            where wanted.wish is not null order by (wanted.wish ->> 'key') collate "C"
        loop
            select taken.run_id, taken.verdict into kept_run, item_verdict
            from take_unique_key(submit_runs.lane, runs[item_place], run_gates[item_place], wishes[item_place]) as taken;
            if item_verdict <> 'new' then
                not_new := not_new || ids[item_place];
                return query select ordinals[item_place], kept_run, item_verdict;
            end if;
        end loop;
    end if;

    if cardinality(not_new) < cardinality(ids) then
        if has_ready then
            insert into ready (lane, {run})
            select submit_runs.lane, {run of run}
            from rows from (unnest(run_gates), unnest(run_waits), unnest(runs)) as run (gates, waits)
            where run.due_at <= clock_now() and run.gates is null and run.waits is null and run.id <> all (not_new);
        end if;
        if has_held then
            insert into held (lane, {run}, reason, gates, gate, turn)
            select submit_runs.lane, {run of run}, 'limit', run.gates, split_part(run.gates, E'\n', 1),
                   turn_of(split_part(run.gates, E'\n', 1), run.priority, run.submitted_at)
            from rows from (unnest(run_gates), unnest(run_waits), unnest(runs)) as run (gates, waits)
            where run.due_at <= clock_now() and run.gates is not null and run.waits is null and run.id <> all (not_new);
        end if;
        if has_waiting then   -- for other runs to end, whenever they are due
            insert into held (lane, {run}, reason, gates)
            select submit_runs.lane, {run of run}, 'parent', run.gates
            from rows from (unnest(run_gates), unnest(run_waits), unnest(runs)) as run (gates, waits)
            where run.waits and run.id <> all (not_new);
        end if;
        if has_later then
            insert into later (lane, {run}, gates)
            select submit_runs.lane, {run of run}, run.gates
            from rows from (unnest(run_gates), unnest(run_waits), unnest(runs)) as run (gates, waits)
            where run.due_at > clock_now() and run.waits is null and run.id <> all (not_new);
        end if;
        return query
        select item.ordinal, item.id, 'new' from unnest(ordinals, ids) as item (ordinal, id)
        where item.id <> all (not_new);
    end if;
    if key_wait is not null then
        perform set_config('lock_timeout', usual_wait, true);   -- it was meant for keys only, not for what follows
    end if;

    -- Some answers were found, not written. Something written after them makes COMMIT wait until the standby has both.
    if cardinality(not_new) > 0 then
        perform pg_logical_emit_message(true, 'mainspring', '')
        from lane
        where lane.lane = submit_runs.lane and current_setting('synchronous_standby_names') <> '';
    end if;
end $$;

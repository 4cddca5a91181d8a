-- Runs name their job and line by numbers, which mean something in one installation only. Each installation gets an id;
-- whoever accepts runs compares it, and the names behind the numbers. Wake-ups leave the accepting transaction, and a
-- replay of an idempotency key writes something, so that its answer is on the standby, too.
-- serves: 8

insert into setting (name, value) values ('installation', gen_random_uuid()::text) on conflict do nothing;

-- Together with the database's own number: a copy made by CREATE DATABASE … TEMPLATE is another installation.
create function installation_id() returns text language sql stable set search_path = mainspring, pg_temp as $$
    select setting.value || '-' || pg_database.oid
    from setting cross join pg_database
    where setting.name = 'installation' and pg_database.datname = current_database()
$$;

-- Whether what a client knows holds here: null if so; 'foreign' for another installation, 'unknown' for numbers that do
-- not stand for these jobs and lines.
create function objection_to(known jsonb) returns text language sql stable set search_path = mainspring, pg_temp as $$
    select case
        when known ->> 'installation' is distinct from installation_id() then 'foreign'
        when exists (select from jsonb_each_text(known -> 'jobs') as told (id, name)
                     where not exists (select from job where job.id = told.id::int and job.name = told.name))
          or exists (select from jsonb_each_text(known -> 'lines') as told (id, words)
                     where not exists (select from line where line.id = told.id::int
                                       and concat_ws(' ', line.queue, array_to_string(line.labels, ' ')) = told.words))
            then 'unknown' end
$$;

-- One JSON array of items in, one row per item out: the run that stands for it, and whether it is new, was there before
-- (same key, same content) or is refused (same key, other content; or the client's numbers are not this database's).
-- Locks nothing shared. `key_wait` is how long to wait for a key that an open transaction uses; null: as the session says.
create function submit_runs(items jsonb, known jsonb, key_wait text)
returns table (ordinal int, run_id uuid, verdict text)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    accepted int[];
    objection text := objection_to(known);
    usual_wait text := current_setting('lock_timeout');
begin
    if objection is not null then
        return query
        select item.ordinal, null::uuid, objection from jsonb_to_recordset(items) as item (ordinal int);
        return;
    end if;
    if key_wait is not null then
        perform set_config('lock_timeout', key_wait, true);
    end if;

    with item as materialized (
        select item.*, coalesce(item.at, clock_now() + coalesce(item.delay, 0) * interval '1 second') as due_at
        from jsonb_to_recordset(items) as item (
            ordinal int, lane smallint, id uuid, tenant_id int, job_id int, job_version int, line_id int,
            priority smallint, at timestamptz, delay double precision, max_age double precision,
            start_within double precision, overrides jsonb, codec smallint, payload text, headers jsonb, tags text[],
            key text, digest text, submitted_by text)
    ), kept_key as (
        -- Sorted, so that two batches with the same keys wait for each other instead of deadlocking.
        insert into idempotency (lane, tenant_id, key, run_id, digest)
        select lane, tenant_id, key, id, decode(digest, 'base64') from item where key is not null order by lane, key
        on conflict do nothing
        returning run_id
    ), accepted_item as materialized (
        select item.* from item where key is null or id in (select run_id from kept_key)
    ), into_ready as (
        insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, due_at, expires_at, codec,
                           payload, headers, tags, idempotency_key, submitted_by, retry_until, overrides)
        select lane, id, tenant_id, job_id, job_version, line_id, priority, due_at,
               due_at + least(max_age, start_within) * interval '1 second', codec, decode(payload, 'base64'), headers,
               tags, key, submitted_by, due_at + max_age * interval '1 second', overrides
        from accepted_item where due_at <= clock_now()
    ), into_later as (
        insert into later (lane, id, tenant_id, job_id, job_version, line_id, priority, due_at, expires_at, codec,
                           payload, headers, tags, idempotency_key, submitted_by, retry_until, overrides)
        select lane, id, tenant_id, job_id, job_version, line_id, priority, due_at,
               due_at + least(max_age, start_within) * interval '1 second', codec, decode(payload, 'base64'), headers,
               tags, key, submitted_by, due_at + max_age * interval '1 second', overrides
        from accepted_item where due_at > clock_now()
    )
    select coalesce(array_agg(ordinal), '{}') from accepted_item into accepted;

    if key_wait is not null then
        perform set_config('lock_timeout', usual_wait, true);   -- it was meant for keys only, not for what follows
    end if;

    return query
    select item.ordinal, item.id, 'new'
    from jsonb_to_recordset(items) as item (ordinal int, id uuid) where item.ordinal = any (accepted);

    -- A statement of its own: whoever holds a key may have committed after the first one took its snapshot.
    if cardinality(accepted) < jsonb_array_length(items) then
        return query
        select item.ordinal, kept.run_id,
               case when kept.run_id is null then 'gone'
                    when kept.digest = decode(item.digest, 'base64') then 'same'
                    else 'conflict' end
        from jsonb_to_recordset(items) as item (
            ordinal int, lane smallint, id uuid, tenant_id int, key text, digest text)
        left join idempotency as kept
            on kept.lane = item.lane and kept.tenant_id = item.tenant_id and kept.key = item.key
        where item.ordinal <> all (accepted);
        -- That answer was found, not written. Something written after it makes COMMIT wait until the standby has both.
        perform pg_logical_emit_message(true, 'mainspring', '')
        from lane
        where lane in (select item.lane from jsonb_to_recordset(items) as item (ordinal int, lane smallint)
                       where item.ordinal <> all (accepted))
          and current_setting('synchronous_standby_names') <> '';
    end if;
end $$;

-- What programs before this migration call.
create or replace function submit(items jsonb, wake_ups text[])
returns table (ordinal int, run_id uuid, verdict text)
language plpgsql set search_path = mainspring, pg_temp as $$
declare
    wake_up text;
begin
    foreach wake_up in array wake_ups loop
        perform pg_notify(split_part(wake_up, ' ', 1), split_part(wake_up, ' ', 2));
    end loop;
    return query
    select * from submit_runs(items, jsonb_build_object('installation', installation_id()), null);
end $$;

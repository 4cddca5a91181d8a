-- Policies per run: a run may carry its own, remembers its first start, and may have to start within a time.
-- serves: 1

alter type attempt_outcome add value 'timed_out';
alter type attempt_outcome add value 'snoozed';

-- `retry_until` is what `expires_at` becomes once a run has started; `overrides` are its own policies.
alter table ready add column retry_until timestamptz, add column first_started_at timestamptz,
    add column overrides jsonb;
alter table later add column retry_until timestamptz, add column first_started_at timestamptz,
    add column overrides jsonb;
alter table held add column retry_until timestamptz, add column first_started_at timestamptz,
    add column overrides jsonb;
alter table dead add column retry_until timestamptz, add column first_started_at timestamptz,
    add column overrides jsonb;

alter type run_row add attribute retry_until timestamptz, add attribute first_started_at timestamptz,
    add attribute overrides jsonb;

create function run_of(
    id uuid, tenant_id int, job_id int, job_version int, line_id int, priority smallint,
    attempt smallint, fence int, crashes smallint, revision int, due_at timestamptz, expires_at timestamptz,
    codec smallint, payload bytea, headers jsonb, tags text[], idempotency_key text,
    submitted_by text, submitted_at timestamptz, ready_at timestamptz, retry_until timestamptz,
    first_started_at timestamptz, overrides jsonb
) returns run_row language sql immutable parallel safe as $$
    select row (id, tenant_id, job_id, job_version, line_id, priority, attempt, fence, crashes, revision, due_at,
                expires_at, codec, payload, headers, tags, idempotency_key, submitted_by, submitted_at,
                ready_at, retry_until, first_started_at, overrides)::mainspring.run_row
$$;

-- What programs before migration 2 call.
create or replace function run_of(
    id uuid, tenant_id int, job_id int, job_version int, line_id int, priority smallint,
    attempt smallint, fence int, crashes smallint, revision int, due_at timestamptz, expires_at timestamptz,
    codec smallint, payload bytea, headers jsonb, tags text[], idempotency_key text,
    submitted_by text, submitted_at timestamptz, ready_at timestamptz
) returns run_row language sql immutable parallel safe as $$
    select row (id, tenant_id, job_id, job_version, line_id, priority, attempt, fence, crashes, revision, due_at,
                expires_at, codec, payload, headers, tags, idempotency_key, submitted_by, submitted_at,
                ready_at, null, null, null)::mainspring.run_row
$$;

-- What sets a run apart from a plain first attempt, as one value, so that a claim of plain runs carries nothing more.
create function special_of(crashes smallint, first_started_at timestamptz, overrides jsonb)
returns text language sql stable parallel safe as $$
    select case when crashes > 0 or first_started_at is not null or overrides is not null
                then jsonb_build_object('crashes', crashes, 'overrides', overrides, 'first_started_at',
                                        (date_part('epoch', first_started_at) * 1000000)::bigint)::text end
$$;

create or replace function submit(items jsonb, wake_ups text[])
returns table (ordinal int, run_id uuid, verdict text)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    accepted int[];
    wake_up text;
begin
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

    foreach wake_up in array wake_ups loop
        perform pg_notify(split_part(wake_up, ' ', 1), split_part(wake_up, ' ', 2));
    end loop;

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
    end if;
end $$;

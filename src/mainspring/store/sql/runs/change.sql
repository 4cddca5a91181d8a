-- Change waiting runs wherever they wait, if their revision is still the one the caller saw (or none was seen), and so
-- their line; a new time may move them between `later` and `ready`, and moves their expiry along. A null parameter
-- leaves its attribute as it is. An expiry that differs from `retry_until` is that of start_within: a new maximum age
-- does not put off the first start.
-- Moves: change.  Index: primary keys.
with from_ready as (
    delete from ready where lane = :lane::smallint and id = any (:runs::uuid[]) and tenant_id = :tenant::int
      and revision = coalesce(:revision::int, revision) and line_id = coalesce(:present_line::int, line_id) returning *
), from_later as (
    delete from later where lane = :lane::smallint and id = any (:runs::uuid[]) and tenant_id = :tenant::int
      and revision = coalesce(:revision::int, revision) and line_id = coalesce(:present_line::int, line_id) returning *
), taken as materialized (
    select lane, {run}, rank, ready_at from from_ready
    union all
    select lane, {run}, null, null from from_later
), changed as materialized (
    select lane, {run except line_id, priority, revision, due_at, expires_at, retry_until, codec, payload, tags},
           coalesce(:line::int, line_id) as line_id, coalesce(:priority::smallint, priority) as priority,
           revision + 1 as revision, coalesce(:due_at::timestamptz, due_at) as due_at,
           case when :max_age::double precision is not null
                then least(coalesce(:due_at::timestamptz, due_at) + :max_age::double precision * interval '1 second',
                           case when expires_at is distinct from retry_until
                                then expires_at + (coalesce(:due_at::timestamptz, due_at) - due_at) end)
                else expires_at + (coalesce(:due_at::timestamptz, due_at) - due_at) end as expires_at,
           case when :max_age::double precision is not null
                then coalesce(:due_at::timestamptz, due_at) + :max_age::double precision * interval '1 second'
                else retry_until + (coalesce(:due_at::timestamptz, due_at) - due_at) end as retry_until,
           coalesce(:codec::smallint, codec) as codec, coalesce(:payload::bytea, payload) as payload,
           coalesce(:tags::text[], tags) as tags, rank, ready_at
    from taken
), into_ready as (
    insert into ready (lane, {run}, rank, ready_at)
    select lane, {run}, least(rank, rank_now()), least(ready_at, clock_now())   -- it may have been staged
    from changed where due_at <= clock_now()
), into_later as (
    insert into later (lane, {run}) select lane, {run} from changed where due_at > clock_now()
), found_held as materialized (
    select id, case when :max_age::double precision is not null
                    then least(coalesce(:due_at::timestamptz, due_at) + :max_age::double precision * interval '1 second',
                               case when expires_at is distinct from retry_until
                                    then expires_at + (coalesce(:due_at::timestamptz, due_at) - due_at) end)
                    else expires_at + (coalesce(:due_at::timestamptz, due_at) - due_at) end as expires_at,
               case when :max_age::double precision is not null
                    then coalesce(:due_at::timestamptz, due_at) + :max_age::double precision * interval '1 second'
                    else retry_until + (coalesce(:due_at::timestamptz, due_at) - due_at) end as retry_until
    from held where lane = :lane::smallint and id = any (:runs::uuid[]) and tenant_id = :tenant::int
      and revision = coalesce(:revision::int, revision) and line_id = coalesce(:present_line::int, line_id)
    for update
), in_held as (
    update held set line_id = coalesce(:line::int, held.line_id), revision = held.revision + 1,
           priority = coalesce(:priority::smallint, held.priority),
           due_at = coalesce(:due_at::timestamptz, held.due_at), expires_at = found_held.expires_at,
           retry_until = found_held.retry_until,
           codec = coalesce(:codec::smallint, held.codec), payload = coalesce(:payload::bytea, held.payload),
           tags = coalesce(:tags::text[], held.tags)
    from found_held where held.lane = :lane::smallint and held.id = found_held.id
    returning held.lane, held.id, held.tenant_id, held.line_id, held.priority, held.revision, held.due_at
), result as (
    select lane, id, tenant_id, line_id, priority, revision,
           case when due_at <= clock_now() then 'ready' else 'scheduled' end::run_state as state from changed
    union all
    select lane, id, tenant_id, line_id, priority, revision, 'held'::run_state from in_held
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select lane, tenant_id, :actor::text, 'run.change', id::text, :detail::jsonb from result
)
select id, line_id, priority, revision, state from result

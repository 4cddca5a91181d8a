-- Look at idempotency keys whose time to be looked at has come: those whose run ended a day ago (or is nowhere any
-- more) go; for the others the next look is when they can go at the earliest.
-- Index: idempotency_check_idx, primary keys (of dependency, too), attempt_run_idx since the key was used (a day earlier, for a server whose
-- clock was set back).
with looked_at as materialized (
    select idempotency.tenant_id, idempotency.key, ended.at as ended_at,
           coalesce(ended.at + interval '24 hours', clock_now() + interval '1 hour') as check_at,
           exists (select from ready where lane = :lane::smallint and id = idempotency.run_id)
           or exists (select from later where lane = :lane::smallint and id = idempotency.run_id)
           or exists (select from held where lane = :lane::smallint and id = idempotency.run_id)
           or exists (select from dead where lane = :lane::smallint and id = idempotency.run_id)
           or exists (select from lease where lane = :lane::smallint and ids @> array[idempotency.run_id])
           -- A child is known by its key for as long as its run may submit it again.
           or exists (select from dependency
                      where dependency.lane = :lane::smallint and dependency.parent_id = dependency.child_id
                        and dependency.parent_id =
                            case when idempotency.key ~ '^child:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:'
                                 then substr(idempotency.key, 7, 36)::uuid end) as is_alive
    from idempotency
    left join lateral (
        select max(attempt.recorded_at) as at from attempt
        where attempt.lane = :lane::smallint and attempt.run_id = idempotency.run_id
          and attempt.recorded_at >= idempotency.created_at - interval '1 day'
          and attempt.state in ({ends})) as ended on true
    where idempotency.lane = :lane::smallint and idempotency.check_at <= clock_now()
    order by idempotency.check_at limit :count::int
    for update of idempotency skip locked
), forgotten as (
    delete from idempotency using looked_at
    where idempotency.lane = :lane::smallint and idempotency.tenant_id = looked_at.tenant_id
      and idempotency.key = looked_at.key and not looked_at.is_alive
      and coalesce(looked_at.ended_at, '-infinity') <= clock_now() - interval '24 hours'
), postponed as (
    update idempotency set check_at = looked_at.check_at from looked_at
    where idempotency.lane = :lane::smallint and idempotency.tenant_id = looked_at.tenant_id
      and idempotency.key = looked_at.key
      and (looked_at.is_alive or looked_at.ended_at > clock_now() - interval '24 hours')
)
select count(*) from looked_at

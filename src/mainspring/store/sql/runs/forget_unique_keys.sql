-- Look at unique keys whose time to be looked at has come: those whose run is over go; the others are looked at again in an hour.
-- Whoever takes a key meanwhile puts that time off, so that what is found here is true of the run that is named there.
-- Index: unique_key_check_idx, primary keys; lease through `ids`, which is small.
with looked_at as materialized (
    select unique_key.tenant_id, unique_key.job_id, unique_key.key,
           exists (select from ready where lane = :lane::smallint and id = unique_key.run_id)
           or exists (select from later where lane = :lane::smallint and id = unique_key.run_id)
           or exists (select from held where lane = :lane::smallint and id = unique_key.run_id)
           or exists (select from dead where lane = :lane::smallint and id = unique_key.run_id)
           or exists (select from lease where lane = :lane::smallint and ids @> array[unique_key.run_id]) as is_alive
    from unique_key
    where unique_key.lane = :lane::smallint and unique_key.check_at <= clock_now()
    order by unique_key.check_at limit :count::int
    for update of unique_key skip locked
), forgotten as (
    delete from unique_key using looked_at
    where unique_key.lane = :lane::smallint and unique_key.tenant_id = looked_at.tenant_id
      and unique_key.job_id = looked_at.job_id and unique_key.key = looked_at.key and not looked_at.is_alive
), postponed as (
    update unique_key set check_at = clock_now() + interval '1 hour' from looked_at
    where unique_key.lane = :lane::smallint and unique_key.tenant_id = looked_at.tenant_id
      and unique_key.job_id = looked_at.job_id and unique_key.key = looked_at.key and looked_at.is_alive
)
select count(*) from looked_at

-- End waiting runs that were not started in time. An end without an attempt is a history row with attempt 0.
-- Moves: expire.  Index: ready_expiry_idx, later_expiry_idx, held_expiry_idx.
with late_ready as (
    select id from ready where lane = :lane::smallint and expires_at <= clock_now()
    order by expires_at limit :count::int for update skip locked
), late_later as (
    select id from later where lane = :lane::smallint and expires_at <= clock_now()
    order by expires_at limit :count::int for update skip locked
), late_held as (
    select id from held where lane = :lane::smallint and expires_at <= clock_now()
    order by expires_at limit :count::int for update skip locked
), from_ready as (
    delete from ready where lane = :lane::smallint and id = any (array(select id from late_ready)) returning *
), from_later as (
    delete from later where lane = :lane::smallint and id = any (array(select id from late_later)) returning *
), from_held as (
    delete from held where lane = :lane::smallint and id = any (array(select id from late_held)) returning *
), expired as materialized (
    select lane, id, {recorded}, ready_at from from_ready
    union all
    select lane, id, {recorded}, null from from_later
    union all
    select lane, id, {recorded}, null from from_held
), recorded as (
    insert into attempt (lane, run_id, {recorded}, ready_at, attempt, outcome, state, finished_at)
    select lane, id, {recorded}, ready_at, 0, 'expired', 'expired', clock_now() from expired
)
select count(*) from expired

-- What the instants of one schedule became, newest first, from a position on: runs; or those that were late by more.
-- Index: occurrence_pkey, occurrence_past_pkey.
select nominal_at, due_at, run_id, version, fired_at from (
    (select nominal_at, due_at, run_id, version, fired_at from occurrence
     where lane = :lane::smallint and schedule_id = :schedule::uuid
       and nominal_at < :before::timestamptz and nominal_at >= :since::timestamptz
       and (:late_by::interval is null or fired_at - due_at > :late_by::interval)
     order by nominal_at desc limit :count::int)
    union all
    (select nominal_at, due_at, run_id, version, fired_at from occurrence_past
     where lane = :lane::smallint and schedule_id = :schedule::uuid
       and nominal_at < :before::timestamptz and nominal_at >= :since::timestamptz
       and (:late_by::interval is null or fired_at - due_at > :late_by::interval)
     order by nominal_at desc limit :count::int)) as fired
order by nominal_at desc limit :count::int

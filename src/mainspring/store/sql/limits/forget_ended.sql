-- Forget runs of schedules in one lane that are nowhere any more: there should never be one, but a worker of before knows no
-- more of their end than history does. A row goes in the transaction that ends its run, so one snapshot shows both as they
-- belong together.
-- Index: schedule_run primary key, and the primary keys of the places.
delete from schedule_run
where schedule_run.lane = :lane::smallint and schedule_run.made_at < clock_now() - interval '5 seconds'
  and not exists (select from ready where ready.lane = :lane::smallint and ready.id = schedule_run.run_id)
  and not exists (select from held where held.lane = :lane::smallint and held.id = schedule_run.run_id)
  and not exists (select from later where later.lane = :lane::smallint and later.id = schedule_run.run_id)
  and not exists (select from dead where dead.lane = :lane::smallint and dead.id = schedule_run.run_id)
  and not exists (
      select from lease
      where lease.lane = :lane::smallint and lease.ids @> array[schedule_run.run_id]
        and get_bit(lease.done, array_position(lease.ids, schedule_run.run_id) - 1) = 0)
returning schedule_run.run_id, schedule_run.schedule_id

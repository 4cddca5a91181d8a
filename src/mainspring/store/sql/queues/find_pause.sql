-- Since when a queue is paused, by whom and why.
select paused_at, paused_by, pause_reason from queue
where tenant_id = :tenant::int and name = :queue::text and paused_at is not null

-- All lines of a tenant, and so the queues there are.
select id, queue, labels from line where tenant_id = :tenant::int order by queue

-- Lines of queues that are paused: what would be released there would only keep slots from others.
select line.id from queue join line on line.tenant_id = queue.tenant_id and line.queue = queue.name
where queue.paused_at is not null

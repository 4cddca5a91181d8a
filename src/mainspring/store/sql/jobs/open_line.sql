-- Make sure a queue has its line.
insert into line (tenant_id, queue) values (:tenant::int, :queue::text)
on conflict (tenant_id, queue, labels) do nothing

-- Make sure a queue has the line with these requirements, unless it has too many lines already.
insert into line (tenant_id, queue, labels)
select :tenant::int, :queue::text, :labels::text[]
where (select count(*) from line where tenant_id = :tenant::int and queue = :queue::text) < :most::int
on conflict (tenant_id, queue, labels) do nothing

-- As jobs/open_line, with a number of our own: a worker node of a Citus cluster cannot ask the sequence for one.
insert into line (id, tenant_id, queue, labels)
select :number::int, :tenant::int, :queue::text, :labels::text[]
where (select count(*) from line where tenant_id = :tenant::int and queue = :queue::text) < :most::int
on conflict (tenant_id, queue, labels) do nothing

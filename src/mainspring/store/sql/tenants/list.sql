-- Every tenant, or some by name: for whoever operates the installation.
select id, name, weight, created_at, changed_at, changed_by, reason from tenant
where :names::text[] is null or name = any (:names::text[])
order by name limit :count::int

-- What this user lacks on our tables to submit, claim and settle runs.
select relation.relname as table_name, privilege.name as privilege
from pg_class as relation
cross join unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE']) as privilege (name)
where relation.relnamespace = :schema::text::regnamespace and relation.relkind in ('r', 'p')
  and relation.relname <> 'migration' and not relation.relispartition
  and not has_table_privilege(relation.oid, privilege.name)
order by 1, 2

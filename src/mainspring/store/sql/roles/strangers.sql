-- Tables in our schema that are not ours, and how to move them: they were made over connections whose search path begins
-- with it. Shards and detached partitions of ours are called like their table, with a number.
select relation.relname as name, format('alter table %I.%I set schema public', :schema::text, relation.relname) as remedy
from pg_class as relation
where relation.relnamespace = (select oid from pg_namespace where nspname = :schema::text)
  and relation.relkind in ('r', 'p', 'f', 'v', 'm', 'S') and not relation.relispartition
  and regexp_replace(relation.relname, '_\d+$', '') <> all (:ours::text[])
  and not exists (select from pg_depend   -- the sequence of a column, or a part of an extension
                  where pg_depend.classid = 'pg_class'::regclass and pg_depend.objid = relation.oid
                    and (pg_depend.deptype = 'e' or relation.relkind = 'S' and pg_depend.deptype in ('a', 'i')))
order by relation.relname

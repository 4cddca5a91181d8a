-- The partitions of history and the bounds they cover.
select child.relname as name, pg_get_expr(child.relpartbound, child.oid) as bounds
from pg_inherits join pg_class as child on child.oid = pg_inherits.inhrelid
where pg_inherits.inhparent = 'attempt'::regclass

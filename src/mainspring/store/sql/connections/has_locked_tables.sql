-- Whether somebody holds a lock on one of these tables under which nothing can be written to it.
select exists (
    select from pg_locks join pg_class on pg_class.oid = pg_locks.relation
    where pg_class.relnamespace = :schema::text::regnamespace and pg_class.relname = any (:tables::text[])
      and pg_locks.granted and pg_locks.locktype = 'relation'
      and pg_locks.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))

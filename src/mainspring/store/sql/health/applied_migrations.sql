-- The migrations this database has seen.
select version, name, applied_at from migration order by version

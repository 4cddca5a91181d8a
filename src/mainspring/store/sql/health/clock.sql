-- The database's time, now and not at the start of the transaction, in microseconds since 1970.
select (extract(epoch from clock_timestamp()) * 1000000)::bigint

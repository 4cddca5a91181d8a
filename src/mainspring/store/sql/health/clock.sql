-- The database's time, now and not at the start of the transaction.
select extract(epoch from clock_timestamp())::double precision

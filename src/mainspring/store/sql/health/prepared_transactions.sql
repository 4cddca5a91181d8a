-- Prepared transactions nobody has finished: they survive restarts and hold back vacuum.
select gid, owner, extract(epoch from clock_timestamp() - prepared)::double precision as seconds
from pg_prepared_xacts
where prepared < clock_timestamp() - :older_than::double precision * interval '1 second'
order by prepared limit 20

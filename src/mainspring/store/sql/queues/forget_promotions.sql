-- Forget how many runs were promoted long ago.
delete from promotion
where lane = :lane::smallint and at < clock_now() - :window::double precision * interval '1 second'

-- Forget samples that no rate is measured against any more.
delete from load_sample
where lane = :lane::smallint and at < clock_now() - :window::double precision * interval '1 second'

-- Forget samples that no rate is measured against any more.
delete from line_sample where at < clock_now() - :window::double precision * interval '1 second'

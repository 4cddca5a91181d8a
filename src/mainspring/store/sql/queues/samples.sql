-- For each line the oldest sample in a window: what rates are measured against.
select distinct on (line_id) line_id, depth, holding, finished, busy_seconds,
       extract(epoch from clock_now() - at)::double precision as age
from load_sample
where lane = :lane::smallint and at >= clock_now() - :window::double precision * interval '1 second'
order by line_id, at

-- Remember what each line looks like now.
insert into load_sample (lane, line_id, depth, holding, finished, busy_seconds)
select :lane::smallint, seen.*
from unnest(:lines::int[], :depths::bigint[], :holdings::bigint[], :finished::bigint[],
            :busy_seconds::double precision[]) as seen
on conflict (lane, line_id, at) do nothing

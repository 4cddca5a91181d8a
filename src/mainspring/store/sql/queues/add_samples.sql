-- Remember what each line looks like now.
insert into line_sample (line_id, depth, holding, finished, busy_seconds)
select * from unnest(:lines::int[], :depths::bigint[], :holdings::bigint[], :finished::bigint[],
                     :busy_seconds::double precision[])
on conflict (line_id, at) do nothing

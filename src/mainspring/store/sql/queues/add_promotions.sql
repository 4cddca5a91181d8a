-- A keeper says how many runs of each line it has promoted since it last did.
-- Index: promotion primary key.
insert into promotion (lane, line_id, runs)
select :lane::smallint, said.line_id, said.runs from unnest(:lines::int[], :runs::bigint[]) as said (line_id, runs)
on conflict (lane, line_id, at) do update set runs = promotion.runs + excluded.runs

-- How many runs of each line were promoted lately.
select line_id, sum(runs)::bigint as runs from promotion
where lane = :lane::smallint and at > clock_now() - :window::double precision * interval '1 second'
group by line_id

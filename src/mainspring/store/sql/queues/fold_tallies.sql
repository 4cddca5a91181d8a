-- Add up what workers long gone have done under the nil UUID: their rows go, the sums stay.
with gone as (
    delete from tally using worker
    where worker.id = tally.worker_id and worker.ended_at < clock_now() - interval '1 hour'
    returning tally.line_id, tally.finished, tally.busy_seconds
)
insert into tally (worker_id, line_id, finished, busy_seconds, holding)
select '00000000-0000-0000-0000-000000000000', line_id, sum(finished), sum(busy_seconds), 0 from gone group by line_id
on conflict (worker_id, line_id) do update
set finished = tally.finished + excluded.finished, busy_seconds = tally.busy_seconds + excluded.busy_seconds

-- How many schedules of one lane are due within each of some spans; of many, no more are counted than that.
-- Index: cursor_due_idx.
select mark.seconds, (
    select count(*) from (
        select from cursor
        where cursor.lane = :lane::smallint and cursor.due_at <= clock_now() + mark.seconds * interval '1 second'
        order by cursor.due_at limit :most::int) as due) as schedules
from unnest(:marks::double precision[]) as mark (seconds)

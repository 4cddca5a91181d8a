-- What some schedules of one lane are, by their names.
-- Index: schedule_name_idx.
select {schedule except options}, options::text as options, state
from schedule where lane = :lane::smallint and tenant_id = :tenant::int and name = any (:names::text[])

-- Lock some schedules of one lane by their names, in one order for everybody, for whoever changes them.
-- Index: schedule_name_idx.
select {schedule except options}, options::text as options, {standing}
from schedule where lane = :lane::smallint and tenant_id = :tenant::int and name = any (:names::text[])
order by name collate "C"
for update

-- Lock one schedule by its name, unless somebody else has: a scheduler does not wait for people.
-- Index: schedule_name_idx.
select {schedule except options}, options::text as options, {standing}, statement_now() as now
from schedule where lane = :lane::smallint and tenant_id = :tenant::int and name = :name::text
for update skip locked

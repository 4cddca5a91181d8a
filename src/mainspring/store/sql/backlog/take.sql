-- Take places in backlogs whose gates are in one lane, and lock those gates until COMMIT.
-- See the function.
select gate, scope, name, key, tenant_id, most, when_full, counted, checked, is_taken, was_full
from take_places(:lane::smallint, :gates::text[], :counts::int[])

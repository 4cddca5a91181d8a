-- How many runs wait in one lane, and the highest fence among them. It reads the whole lane, for an act that changes it.
-- Index: primary keys.
select count(*) as runs, coalesce(max(fence), 0) as highest_fence
from (
    select fence from ready where lane = :lane::smallint
    union all select fence from later where lane = :lane::smallint
    union all select fence from held where lane = :lane::smallint
    union all select fence from dead where lane = :lane::smallint
) as waiting

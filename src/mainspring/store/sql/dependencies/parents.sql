-- For which runs of one lane a run still waits.
-- Index: dependency_pending_idx.
select dependency.parent_id, dependency.condition
from dependency
where dependency.lane = :lane::smallint and dependency.child_id = :child::uuid
  and not dependency.has_ended and not dependency.is_news
order by dependency.child_id limit :count::int

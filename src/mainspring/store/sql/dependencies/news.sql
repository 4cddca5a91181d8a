-- Which runs of one lane have ended without those being told that wait for them.
-- Locked until they are acted on: else one that is requeued and ends again meanwhile would be forgotten.
-- Index: dependency_news_idx.
select dependency.parent_id, dependency.child_id, dependency.lanes, dependency.condition, dependency.otherwise,
       dependency.is_lost, dependency.inputs::text as inputs, dependency.otherwise = 'fail' as is_of_fan_out
from dependency
where dependency.lane = :lane::smallint and dependency.is_news
order by dependency.child_id limit :count::int for update skip locked

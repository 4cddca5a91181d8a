-- Which runs of one lane have ended for which some others wait, without those having been told.
-- Index: dependency_news_idx.
select news.parent_id, news.child_id, news.lanes, news.condition, news.otherwise, news.is_lost,
       news.inputs::text as inputs
from unnest(:children::uuid[]) as child (id) cross join lateral (
    select dependency.parent_id, dependency.child_id, dependency.lanes, dependency.condition, dependency.otherwise,
           dependency.is_lost, dependency.inputs
    from dependency
    where dependency.lane = :lane::smallint and dependency.child_id = child.id and dependency.is_news
      and dependency.otherwise <> 'fail'
    order by dependency.child_id) as news

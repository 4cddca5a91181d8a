-- Results of runs of one lane that were collected for others, and which of their arguments get them.
-- Index: dependency_child_idx.
select parent.child_id, parent.inputs::text as places, parent.results
from unnest(:children::uuid[]) as child (id) cross join lateral (
    select dependency.child_id, dependency.inputs, dependency.results from dependency
    where dependency.lane = :lane::smallint and dependency.child_id = child.id and dependency.results is not null
    order by dependency.child_id) as parent

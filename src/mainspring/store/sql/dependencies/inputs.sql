-- Whose results some runs get as arguments, of the runs of one lane, and where: one row for each. As arrays, since there may
-- be ten thousand. Of those that were collected, only how large they are.
-- Index: dependency_child_idx.
select child.id as child_id, array_agg(parent.parent_id) filter (where parent.results is null) as parents,
       (json_agg(parent.inputs) filter (where parent.results is null))::text as places,
       coalesce(sum(octet_length(parent.results)), 0)::bigint as collected
from unnest(:children::uuid[]) as child (id) cross join lateral (
    select dependency.parent_id, dependency.inputs, dependency.results from dependency
    where dependency.lane = :lane::smallint and dependency.child_id = child.id and dependency.inputs is not null
    order by dependency.child_id) as parent
group by child.id

-- Pairs of line and lane in which runs are in line or staged, without some that the caller knows: one step in the index from
-- the first run of a pair to the first of the next one, however many lines there are and however many runs. The pairs to pass
-- over are the bounds of gaps, and nothing of them is touched: whoever claims there leaves dead entries at their fronts.
-- Index: ready_claim_idx. Of all lanes, and only where they are in one place: on Citus recursion stays within a node.
-- A comparison of rows alone does not tell the planner that the index may be used, which is a partial one.
with recursive pair as (
    select first.line_id, first.lane, gap.until_line, gap.until_lane
    from unnest(:after_lines::int[], :after_lanes::smallint[], :until_lines::int[], :until_lanes::smallint[])
        as gap (after_line, after_lane, until_line, until_lane)
    cross join lateral (
        select ready.line_id, ready.lane from ready
        where ready.line_id >= gap.after_line and (ready.line_id, ready.lane) > (gap.after_line, gap.after_lane)
          and (ready.line_id, ready.lane) < (gap.until_line, gap.until_lane)
        order by ready.line_id, ready.lane limit 1) as first
    union all
    select next.line_id, next.lane, pair.until_line, pair.until_lane
    from pair
    cross join lateral (
        select ready.line_id, ready.lane from ready
        where ready.line_id >= pair.line_id and (ready.line_id, ready.lane) > (pair.line_id, pair.lane)
          and (ready.line_id, ready.lane) < (pair.until_line, pair.until_lane)
        order by ready.line_id, ready.lane limit 1) as next
)
select lane, line_id as line from pair limit :count::int

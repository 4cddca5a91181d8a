-- What there is for keepers to look after, by lane: one look for all of them, who would else each ask twice a second.
-- Index: held_gate_idx, held_list_idx, dependency_news_idx, dependency_check_idx, chain_news primary key,
-- backlog_gate_tidy_idx, backlog_addition primary key.
select looked_at.lane, looked_at.gates, looked_at.dependencies, looked_at.followers, looked_at.held, looked_at.backlogs
from (
    select lane.lane,
           -- In the order of the indexes, and not just `exists`: joined as a whole, it would read all that is held.
           (select true from held
            where held.lane = lane.lane /* and held.lane = any (:lanes::smallint[]) */ and held.gate >= ''
            order by held.gate, held.turn limit 1) is true as gates,
           (select true from dependency
            where dependency.lane = lane.lane /* and dependency.lane = any (:lanes::smallint[]) */ and dependency.is_news
            order by dependency.child_id limit 1) is true
           or (select true from dependency
               where dependency.lane = lane.lane /* and dependency.lane = any (:lanes::smallint[]) */
                 and dependency.check_at <= clock_now()
               order by dependency.check_at limit 1) is true as dependencies,
           (select true from chain_news
            where chain_news.lane = lane.lane /* and chain_news.lane = any (:lanes::smallint[]) */
            order by chain_news.run_id limit 1) is true as followers,
           (select true from held
            where held.lane = lane.lane /* and held.lane = any (:lanes::smallint[]) */ and held.line_id >= 0   -- all; but not `is not null`, which the planner drops unused
            order by held.job_id, held.line_id, held.id limit 1) is true as held,
           (select true from backlog_gate
            where backlog_gate.lane = lane.lane /* and backlog_gate.lane = any (:lanes::smallint[]) */
              and backlog_gate.tidy_at <= clock_now()
            order by backlog_gate.tidy_at limit 1) is true
           or (select true from backlog_addition
               where backlog_addition.lane = lane.lane /* and backlog_addition.lane = any (:lanes::smallint[]) */
               order by backlog_addition.gate, backlog_addition.run_id limit 1) is true as backlogs
    from lane where lane.lane = any (:lanes::smallint[])) as looked_at
where looked_at.gates or looked_at.dependencies or looked_at.followers or looked_at.held or looked_at.backlogs

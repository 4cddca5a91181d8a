-- Lanes in which runs have ended after which others are to be submitted.
-- Index: chain_news primary key.
select lane.lane
from lane
where lane.lane = any (:lanes::smallint[]) and (
    -- In the order of the index: see runs/lanes_with_held.
    select true from chain_news
    where chain_news.lane = lane.lane /* and chain_news.lane = any (:lanes::smallint[]) */
    order by chain_news.run_id limit 1)

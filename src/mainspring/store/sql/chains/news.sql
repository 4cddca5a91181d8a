-- Runs of one lane that have ended and after which others are to be submitted. Nothing is locked: see trigger_runs.
-- Index: chain_news primary key.
select chain_news.run_id, chain_news.fence, chain_news.state, chain_news.tenant_id, chain_news.job_id,
       concat_ws(' ', chain_news.run_id, chain_news.fence, chain_news.state) as news, clock_now() as now
from chain_news
where chain_news.lane = :lane::smallint
order by chain_news.run_id limit :count::int

-- Claims lock no single runs where nobody else claims, and runs in line have no index by job: both were written ahead for
-- each run. Lists by job find what is in line by the index of claims, which says the job.
-- Programs of before list runs in line by that index, too, and read more of it.
-- serves: 12
-- functions: 900fa10701889e98

drop index ready_job_idx;
drop index ready_claim_idx;
create index ready_claim_idx on ready (line_id, lane, priority, rank, job_id) where line_id is not null;

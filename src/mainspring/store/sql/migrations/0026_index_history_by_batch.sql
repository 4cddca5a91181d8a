-- Runs that one lease had and that succeeded together are in the index of jobs once: an entry for each was one byte in
-- sixteen of what a run writes ahead. One row names all that are like it, itself too (`covers`); the others (`is_covered`)
-- are found by their ids. Rows that are there already, and those of every other way into history, have entries of their own.
-- Programs of before go on: what they write is indexed one by one, and what they read is right. But an index no longer
-- carries their lists of runs that succeeded: these take as long as reading the days they ask for.
-- While the index is made anew, a second or two per million rows of history, nothing is recorded.
-- serves: 12
-- functions: 4789fa1d31181b1a

alter table attempt add column is_covered boolean, add column covers uuid[];

drop index attempt_job_idx;
create index attempt_job_idx on attempt (job_id, line_id, recorded_at) where job_id is not null and is_covered is not true;

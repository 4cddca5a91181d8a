-- How many runs of a line wait for their time, and how many of them came in line lately. Counted by line, so the index of jobs
-- has the line first: whoever asks for a job names its lines. Programs of before go on: what they promote is not shown.
-- serves: 12
-- functions: 24e433981dbfbedf

-- How many runs of a line a keeper has promoted since it last said so. All of them are in one lane, as the samples are.
create table promotion (
    lane smallint not null,
    line_id int not null,
    at timestamptz not null default clock_now(),
    runs bigint not null,
    primary key (lane, line_id, at)
);

-- By job, although the line comes first: promoting names lines, and is not to take this index for its own.
create index later_list_idx on later (lane, line_id, job_id, id) where job_id is not null;
drop index later_job_idx;   -- last: nobody reads until COMMIT

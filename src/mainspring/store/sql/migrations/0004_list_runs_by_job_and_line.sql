-- Lists of runs by job and by queue, and operations on many runs that can be cut off and resumed.
-- serves: 1

-- The line joins the job in the indexes there are: a list of a queue asks for each job, one of a job for each line.
-- An index of its own for queues would make every submission and every attempt dearer.
drop index ready_job_idx;
create index ready_job_idx on ready (lane, job_id, line_id, id) where job_id is not null;
drop index later_job_idx;
create index later_job_idx on later (lane, job_id, line_id, id) where job_id is not null;
drop index dead_job_idx;
create index dead_job_idx on dead (lane, job_id, line_id, id) where job_id is not null;
create index held_list_idx on held (lane, job_id, line_id, id) where line_id is not null;
drop index attempt_job_idx;
create index attempt_job_idx on attempt (job_id, line_id, recorded_at) where job_id is not null;
drop index attempt_failure_idx;
create index attempt_failure_idx on attempt (job_id, line_id, recorded_at) where outcome <> 'succeeded';

-- One act on many runs. It is worked off in batches, each one transaction that moves the cursor along: whoever resumes
-- it goes on where the last batch ended.
create table operation (
    id uuid primary key,
    tenant_id int not null,
    kind text not null
        constraint an_operation_is_of_a_known_kind check (kind in ('cancel', 'retry', 'change', 'requeue', 'purge')),
    filter jsonb not null,                      -- which runs
    change jsonb not null default '{}',         -- what becomes of them
    actor text not null,
    reason text not null,
    expected bigint,                            -- how many there were to begin with; null: more than were counted
    done bigint not null default 0,
    skipped bigint not null default 0,          -- moved on before their turn came
    cursor text,                                -- where the next batch begins
    started_at timestamptz not null default clock_now(),
    worked_at timestamptz not null default clock_now(),
    ended_at timestamptz
);
create index operation_open_idx on operation (tenant_id, started_at);

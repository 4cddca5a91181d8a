-- A run as a change makes it; what is null stays as it is. A new time moves its expiry along. An expiry that differs from
-- `retry_until` is that of start_within: a new maximum age does not put off the first start.
create or replace function changed_run(
    run run_row, line int, priority smallint, due timestamptz, max_age double precision, codec smallint, payload bytea,
    tags text[]
) returns run_row language sql stable parallel safe set search_path = mainspring, pg_temp as $$
    select run_of(
        {run by name of run except line_id, priority, revision, due_at, expires_at, retry_until, codec, payload, tags},
        line_id => coalesce(line, run.line_id), priority => coalesce(changed_run.priority, run.priority),
        revision => run.revision + 1, due_at => coalesce(due, run.due_at),
        expires_at => case
            when max_age is null then run.expires_at + (coalesce(due, run.due_at) - run.due_at)
            else least(coalesce(due, run.due_at) + max_age * interval '1 second',
                       case when run.expires_at is distinct from run.retry_until
                            then run.expires_at + (coalesce(due, run.due_at) - run.due_at) end) end,
        retry_until => case
            when max_age is null then run.retry_until + (coalesce(due, run.due_at) - run.due_at)
            else coalesce(due, run.due_at) + max_age * interval '1 second' end,
        codec => coalesce(changed_run.codec, run.codec), payload => coalesce(changed_run.payload, run.payload),
        tags => coalesce(changed_run.tags, run.tags), ready_at => run.ready_at)
$$;

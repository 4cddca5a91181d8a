-- Give a waiting run of one lane that nobody has claimed yet what a newer submission brings: all but its id and when it was
-- submitted. Answers whether there was such a run. Its time is put off to that of the new one, though not beyond `latest`; once
-- it has come, the run keeps its place in line. Whoever calls holds the unique key, so only one does this at a time.
create or replace function replace_waiting_run(
    lane smallint, holder uuid, newer run_row, newer_gates text, latest timestamptz
) returns boolean language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    was_due timestamptz;
    was_submitted timestamptz;
    was_revision int;
    was_ranked bigint;
    was_ready timestamptz;
    new_due timestamptz;
    become run_row;
begin
    -- In the order in which runs move on: one that is promoted while we look is found where it went. What was claimed
    -- once has a fence.
    loop
        delete from later
        where later.lane = replace_waiting_run.lane and later.id = holder and later.fence = 0
        returning later.due_at, later.submitted_at, later.revision into was_due, was_submitted, was_revision;
        exit when was_due is not null;
        delete from held
        where held.lane = replace_waiting_run.lane and held.id = holder and held.fence = 0
        returning held.due_at, held.submitted_at, held.revision into was_due, was_submitted, was_revision;
        exit when was_due is not null;
        delete from ready
        where ready.lane = replace_waiting_run.lane and ready.id = holder and ready.fence = 0
        returning ready.due_at, ready.submitted_at, ready.revision, ready.rank, ready.ready_at
        into was_due, was_submitted, was_revision, was_ranked, was_ready;
        exit when was_due is not null;
        -- Somebody may have put it off meanwhile; then it is behind us.
        if not exists (
            select from later
            where later.lane = replace_waiting_run.lane and later.id = holder and later.fence = 0) then
            return false;
        end if;
    end loop;

    new_due := case when was_due > clock_now() then least(newer.due_at, latest) else was_due end;
    become := run_of(
        {run by name of newer except id, revision, due_at, expires_at, retry_until, submitted_at},
        id => holder, revision => was_revision + 1, due_at => new_due,
        expires_at => newer.expires_at + (new_due - newer.due_at),
        retry_until => newer.retry_until + (new_due - newer.due_at), submitted_at => was_submitted, ready_at => was_ready);
    perform free_slots(replace_waiting_run.lane, array[holder], 'succeeded');   -- it may be under other limits by now
    if new_due > clock_now() then
        insert into later (lane, {run}, gates)
        select replace_waiting_run.lane, {run of run}, newer_gates from unnest(array[become]) as run;
    elsif newer_gates is not null and was_ranked is null then   -- in line, whoever claims it sees to its limits
        insert into held (lane, {run}, reason, gates, gate, turn)
        select replace_waiting_run.lane, {run of run}, 'limit', newer_gates, split_part(newer_gates, E'\n', 1),
               turn_of(split_part(newer_gates, E'\n', 1), run.priority, run.submitted_at)
        from unnest(array[become]) as run;
    else
        insert into ready (lane, {run}, rank, ready_at)
        select replace_waiting_run.lane, {run of run}, coalesce(was_ranked, rank_now()), coalesce(was_ready, clock_now())
        from unnest(array[become]) as run;
    end if;
    return true;
end $$;

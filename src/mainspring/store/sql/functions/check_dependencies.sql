-- Look again at runs of one lane for which others were told to wait after they had been submitted: one may have ended in
-- between, by a transaction that did not see yet that it is waited for. So its row is locked where it waits or runs: whoever
-- ends it after that sees it. One that somebody has locked is looked at again a second later, and every other one at growing
-- intervals: programs of before migration 28 tell nobody, and an occurrence that is taken back does not end. A dead letter
-- is over, unless whoever waits for its success waits on. Answers how many were looked at.
-- What somebody is telling just now is passed over: that may be a caller's own transaction, and whoever calls holds the lock
-- of all gates of the lane.
create or replace function check_dependencies(lane smallint, count int) returns int
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    picked uuid[];
    parents uuid[];
    children uuid[];
    leases uuid[];
    in_later uuid[];
    in_held uuid[];
    in_ready uuid[];
    leased uuid[];
    going_on uuid[];
    dead_letters uuid[];
    over uuid[];
begin
    picked := array(
        select distinct few.parent_id from (
            select dependency.parent_id from dependency
            where dependency.lane = check_dependencies.lane and dependency.check_at <= clock_now()
            order by dependency.check_at limit check_dependencies.count for update skip locked) as few);
    if cardinality(picked) = 0 then
        return 0;
    end if;
    select array_agg(free.parent_id), array_agg(free.child_id) into parents, children
    from (select dependency.parent_id, dependency.child_id from dependency
          where dependency.lane = check_dependencies.lane and dependency.parent_id = any (picked)
            and dependency.check_at <= clock_now() for update skip locked) as free;
    leases := array(
        select lease.id from lease
        where lease.lane = check_dependencies.lane and lease.ids && picked order by lease.id for share skip locked);
    in_later := array(
        select later.id from later
        where later.lane = check_dependencies.lane and later.id = any (picked) for share skip locked);
    in_held := array(
        select held.id from held
        where held.lane = check_dependencies.lane and held.id = any (picked) for share skip locked);
    in_ready := array(
        select ready.id from ready
        where ready.lane = check_dependencies.lane and ready.id = any (picked) for share skip locked);
    leased := array(
        select unnest(lease.ids) from lease where lease.lane = check_dependencies.lane and lease.id = any (leases));

    going_on := array(
        select later.id from later where later.lane = check_dependencies.lane and later.id = any (picked))
     || array(select held.id from held where held.lane = check_dependencies.lane and held.id = any (picked))
     || array(select ready.id from ready where ready.lane = check_dependencies.lane and ready.id = any (picked))
     || array(select run.id from lease cross join lateral unnest(lease.ids) with ordinality as run (id, ordinality)
              where lease.lane = check_dependencies.lane and lease.ids && picked and run.id = any (picked)
                and get_bit(lease.done, run.ordinality::int - 1) = 0);
    dead_letters := array(
        select dead.id from dead where dead.lane = check_dependencies.lane and dead.id = any (picked));
    over := array(
        select attempt.run_id from attempt
        where attempt.lane = check_dependencies.lane and attempt.run_id = any (picked)
          and attempt.run_id <> all (going_on));
    -- What is neither here nor in history was taken back, or ended so long ago that history has forgotten it.
    update dependency
    set is_news = true, check_at = null, is_lost = dependency.parent_id <> all (over)
    from unnest(parents, children) as free (parent_id, child_id)
    where dependency.lane = check_dependencies.lane and dependency.parent_id = free.parent_id
      and dependency.child_id = free.child_id and dependency.parent_id <> all (going_on)
      and (dependency.parent_id <> all (dead_letters) or dependency.condition <> 'success' or dependency.otherwise <> 'hold');
    update dependency
    set check_at = clock_now() + case when dependency.parent_id <> all (in_later || in_held || in_ready || leased || dead_letters)
                                      then interval '1 second'
                                      else least(interval '10 minutes', interval '2 seconds' * 4 ^ dependency.checks) end,
        checks = least(dependency.checks + 1, 10)
    from unnest(parents, children) as free (parent_id, child_id)
    where dependency.lane = check_dependencies.lane and dependency.parent_id = free.parent_id
      and dependency.child_id = free.child_id and not dependency.is_news;
    return cardinality(picked);
end $$;

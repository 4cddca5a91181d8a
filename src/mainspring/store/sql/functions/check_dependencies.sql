-- Look again at runs of one lane for which others were told to wait after they had been submitted: one may have ended in
-- between, by a transaction that did not see yet that it is waited for. So whoever ends one just now is waited for first;
-- after that, whoever ends one sees it. All the same each is looked at again now and then: programs of before migration 28
-- tell nobody, and an occurrence that is taken back does not end. Answers how many were looked at.
create or replace function check_dependencies(lane smallint, count int) returns int
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    picked uuid[];
    going_on uuid[];
    over uuid[];
begin
    picked := array(
        select distinct few.parent_id from (
            select dependency.parent_id from dependency
            where dependency.lane = check_dependencies.lane and dependency.check_at <= clock_now()
            order by dependency.check_at limit check_dependencies.count) as few);
    if cardinality(picked) = 0 then
        return 0;
    end if;
    perform lease.id from lease
    where lease.lane = check_dependencies.lane and lease.ids && picked order by lease.id for share;
    perform later.id from later
    where later.lane = check_dependencies.lane and later.id = any (picked) order by later.id for share;
    perform held.id from held
    where held.lane = check_dependencies.lane and held.id = any (picked) order by held.id for share;
    perform ready.id from ready
    where ready.lane = check_dependencies.lane and ready.id = any (picked) order by ready.id for share;

    going_on := array(
        select later.id from later where later.lane = check_dependencies.lane and later.id = any (picked))
     || array(select held.id from held where held.lane = check_dependencies.lane and held.id = any (picked))
     || array(select ready.id from ready where ready.lane = check_dependencies.lane and ready.id = any (picked))
     || array(select run.id from lease cross join lateral unnest(lease.ids) with ordinality as run (id, ordinality)
              where lease.lane = check_dependencies.lane and lease.ids && picked and run.id = any (picked)
                and get_bit(lease.done, run.ordinality::int - 1) = 0);
    over := array(
        select attempt.run_id from attempt
        where attempt.lane = check_dependencies.lane and attempt.run_id = any (picked)
          and attempt.run_id <> all (going_on));
    -- What is neither here nor in history was taken back, or ended so long ago that history has forgotten it.
    update dependency
    set is_news = dependency.parent_id <> all (going_on),
        check_at = case when dependency.parent_id = any (going_on) then clock_now() + interval '10 minutes' end,
        is_lost = dependency.parent_id <> all (going_on || over)
    where dependency.lane = check_dependencies.lane and dependency.parent_id = any (picked)
      and dependency.check_at <= clock_now();
    return cardinality(picked);
end $$;

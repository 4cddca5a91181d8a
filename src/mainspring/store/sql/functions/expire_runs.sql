-- End waiting runs of one lane that were not started in time; answers how many. An end without an attempt is a history row
-- with attempt 0.
create or replace function expire_runs(lane smallint, count int) returns int
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    in_ready uuid[];
    in_later uuid[];
    in_held uuid[];
begin
    in_ready := array(
        select ready.id from ready where ready.lane = expire_runs.lane and ready.expires_at <= clock_now()
        order by ready.expires_at limit expire_runs.count for update skip locked);
    in_later := array(
        select later.id from later where later.lane = expire_runs.lane and later.expires_at <= clock_now()
        order by later.expires_at limit expire_runs.count for update skip locked);
    in_held := array(
        select held.id from held where held.lane = expire_runs.lane and held.expires_at <= clock_now()
        order by held.expires_at limit expire_runs.count for update skip locked);

    if cardinality(in_ready) > 0 then
        insert into attempt (lane, run_id, {recorded}, ready_at, attempt, outcome, state, finished_at)
        select lane, id, {recorded}, ready_at, 0, 'expired', 'expired', clock_now()
        from ready where ready.lane = expire_runs.lane and ready.id = any (in_ready);
        delete from ready where ready.lane = expire_runs.lane and ready.id = any (in_ready);
    end if;
    if cardinality(in_later) > 0 then
        insert into attempt (lane, run_id, {recorded}, attempt, outcome, state, finished_at)
        select lane, id, {recorded}, 0, 'expired', 'expired', clock_now()
        from later where later.lane = expire_runs.lane and later.id = any (in_later);
        delete from later where later.lane = expire_runs.lane and later.id = any (in_later);
    end if;
    if cardinality(in_held) > 0 then
        insert into attempt (lane, run_id, {recorded}, attempt, outcome, state, finished_at)
        select lane, id, {recorded}, 0, 'expired', 'expired', clock_now()
        from held where held.lane = expire_runs.lane and held.id = any (in_held);
        delete from held where held.lane = expire_runs.lane and held.id = any (in_held);
    end if;
    perform end_runs(expire_runs.lane, in_ready || in_later || in_held)
    where cardinality(in_ready || in_later || in_held) > 0;
    return cardinality(in_ready) + cardinality(in_later) + cardinality(in_held);
end $$;

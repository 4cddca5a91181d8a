-- Rules for occurrences that overlap, and for schedules whose runs fail again and again. Which runs of such a schedule have not
-- ended is known in its lane, by a row for each; what depends on that is decided at its instant, not ahead of it. Schedules
-- without such rules have none of this: columns more that say so.
-- Programs of before go on: what they fire ahead of its instant is passed over. Their keepers let what waits for an earlier
-- run go too soon, and what their workers leave behind is found by the keepers of newer ones.
-- serves: 12
-- functions: 45648b355b488903

alter table schedule
    add column overlap text not null default 'allow'
        constraint overlap_is_a_known_rule check (overlap in ('allow', 'skip', 'buffer_one', 'buffer_all', 'cancel_other')),
    add column pause_after_failures int
        constraint it_pauses_after_some_failures check (pause_after_failures > 0);

alter table schedule_version
    add column overlap text not null default 'allow',
    add column pause_after_failures int;

alter table cursor add column at_instant boolean not null default false;
create index cursor_instant_idx on cursor (lane, due_at) where at_instant;

-- Runs of schedules that keep their runs apart, or count failures, from their firing to their end. Nothing counts them: what
-- is here has not ended, but for dead letters, which may be requeued.
create table schedule_run (
    lane smallint not null,
    run_id uuid not null,
    schedule_id uuid not null,
    pause_after int,                            -- so many failures in a row pause its schedule, as that was when it fired
    is_dead boolean not null default false,
    made_at timestamptz not null default clock_now(),
    primary key (lane, run_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
create index schedule_run_schedule_idx on schedule_run (lane, schedule_id, run_id) where schedule_id is not null;

-- Runs of a schedule that ended without success since the last that succeeded: a row for each.
create table schedule_failure (
    lane smallint not null,
    schedule_id uuid not null,
    run_id uuid not null,
    state run_state not null,
    message text,
    failed_at timestamptz not null default clock_now(),
    has_reached boolean not null default false, -- so many that the schedule is to be paused, and nobody has looked yet
    primary key (lane, schedule_id, run_id)
);
create index schedule_failure_reached_idx on schedule_failure (lane, schedule_id) where has_reached;

-- Take back the runs of one schedule whose instant has not come, wherever they wait: they were staged, and nobody has
-- started them. The cursor goes back to the earliest of them. Whoever calls holds the cursor's lock, if there is a cursor.
-- Only what is deleted here is forgotten by the ledger: whatever was claimed first has fired.
create or replace function withdraw_staged(lane int, schedule uuid, since timestamptz)
returns int language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    own smallint := withdraw_staged.lane::smallint;
    staged uuid[];
    withdrawn uuid[] := '{}';
    run record;
    earliest record;
begin
    staged := array(
        select run_id from occurrence
        where occurrence.lane = own and occurrence.schedule_id = withdraw_staged.schedule
          and occurrence.nominal_at >= withdraw_staged.since and occurrence.due_at > clock_now())
    || array(
        select run_id from occurrence_past   -- no keeper has made a partition of that day
        where occurrence_past.lane = own and occurrence_past.schedule_id = withdraw_staged.schedule
          and occurrence_past.nominal_at >= withdraw_staged.since and occurrence_past.due_at > clock_now());
    loop
        for run in delete from ready where ready.lane = own and ready.id = any (staged) and ready.rank > rank_bound()
                   and ready.first_started_at is null returning ready.id loop
            withdrawn := withdrawn || run.id;
        end loop;
        for run in delete from later where later.lane = own and later.id = any (staged) and later.due_at > clock_now()
                   and later.first_started_at is null returning later.id loop
            withdrawn := withdrawn || run.id;
        end loop;
        -- Who changes a run writes it anew, and a deletion that waited for that does not see the new row.
        exit when not exists (select from ready where ready.lane = own and ready.id = any (staged)
                              and ready.rank > rank_bound() and ready.first_started_at is null)
              and not exists (select from later where later.lane = own and later.id = any (staged)
                              and later.due_at > clock_now() and later.first_started_at is null);
    end loop;
    if cardinality(withdrawn) = 0 then
        return 0;
    end if;
    select fired.nominal_at, fired.due_at into earliest from (
        select occurrence.nominal_at, occurrence.due_at from occurrence
        where occurrence.lane = own and occurrence.schedule_id = withdraw_staged.schedule
          and occurrence.nominal_at >= withdraw_staged.since and occurrence.run_id = any (withdrawn)
        union all
        select occurrence_past.nominal_at, occurrence_past.due_at from occurrence_past
        where occurrence_past.lane = own and occurrence_past.schedule_id = withdraw_staged.schedule
          and occurrence_past.nominal_at >= withdraw_staged.since and occurrence_past.run_id = any (withdrawn)) as fired
    order by fired.nominal_at limit 1;
    delete from occurrence
    where occurrence.lane = own and occurrence.schedule_id = withdraw_staged.schedule
      and occurrence.nominal_at >= withdraw_staged.since and occurrence.run_id = any (withdrawn);
    delete from occurrence_past
    where occurrence_past.lane = own and occurrence_past.schedule_id = withdraw_staged.schedule
      and occurrence_past.nominal_at >= withdraw_staged.since and occurrence_past.run_id = any (withdrawn);
    delete from schedule_run where schedule_run.lane = own and schedule_run.run_id = any (withdrawn);
    insert into cursor (lane, schedule_id, nominal_at, due_at, tzdata)
    values (own, withdraw_staged.schedule, earliest.nominal_at, earliest.due_at, '')
    on conflict (lane, schedule_id) do update
        set nominal_at = excluded.nominal_at, due_at = excluded.due_at, revision = cursor.revision + 1;
    return cardinality(withdrawn);
end $$;

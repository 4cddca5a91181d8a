-- What workers and schedulers say of themselves all the time is written into a lane. Shared tables are on every node of a
-- Citus cluster: each heartbeat was a two-phase commit on all of them, and one node that was down stopped all heartbeats.
-- What is written rarely stays where claims look for it: who a worker is, and whether it lives.
-- Programs of before go on in the old columns and tables; those of now read both. The row of a worker that beats in a lane
-- has a lease time that older rescuers, which do not see its heartbeats, never see the end of; `lost_after` is its own.
-- serves: 12

alter table worker add column lost_after double precision;

-- How a worker is doing, in the lane that its id names, or in another one while that cannot be reached. Heartbeats are
-- counters: the sum over all lanes is what moves.
create table worker_heartbeat (
    lane smallint not null,
    worker_id uuid not null,
    beat bigint not null default 0,
    beat_at timestamptz not null default clock_now(),   -- for people; nothing is decided by it
    unsettled int not null default 0,           -- results that it has not settled yet, as it said last
    unsettled_since timestamptz,                -- since when it cannot settle
    primary key (lane, worker_id)
);

-- One incarnation of a scheduler process, in the lane that its id names.
create table scheduler_heartbeat (
    lane smallint not null,
    id uuid not null,
    beat bigint not null default 0,
    host text not null,
    pid int not null,
    version text not null,
    started_at timestamptz not null default clock_now(),
    beat_at timestamptz not null default clock_now(),   -- for people; nothing is decided by it
    primary key (lane, id)
);

-- What a worker has done for a line so far, as it says with its heartbeats. Rates are differences between two looks.
-- Workers long gone are added up under the nil UUID, in each lane.
create table worker_tally (
    lane smallint not null,
    worker_id uuid not null,
    line_id int not null,
    finished bigint not null,                   -- attempts
    busy_seconds double precision not null,     -- what those took, added up
    holding int not null,                       -- runs claimed and not settled
    primary key (lane, worker_id, line_id)
);

-- What a line looked like a little while ago. All of them are in one lane: they are few, and written together.
create table load_sample (
    lane smallint not null,
    line_id int not null,
    at timestamptz not null default clock_now(),
    depth bigint not null,
    holding bigint not null,
    finished bigint not null,
    busy_seconds double precision not null,
    primary key (lane, line_id, at)
);

-- Send the heartbeats of workers, and answer which of them are live still: the others were declared lost.
-- Whoever declares one lost holds its heartbeat until that is committed, and the last statement sees it.
create function beat_workers(lane smallint, workers uuid[])
returns table (id uuid, is_to_drain boolean) language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    this uuid;
begin
    foreach this in array workers loop
        insert into worker_heartbeat (lane, worker_id) values (beat_workers.lane, this)
        on conflict (lane, worker_id) do update set beat = worker_heartbeat.beat + 1, beat_at = excluded.beat_at;
    end loop;
    return query
    select worker.id, worker.drain_requested_at is not null from worker
    where worker.id = any (workers) and worker.state = 'live';
end $$;

-- A worker says what it has done for its lines so far, while it lives: what one says that was declared lost would be
-- counted twice, once its tally has become part of the sum.
create function tally_worker(
    lane smallint, worker uuid, lines int[], finished bigint[], busy_seconds double precision[], holdings int[]
) returns void language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    place int;
begin
    perform from worker where worker.id = tally_worker.worker and worker.state = 'live';
    if not found then
        return;
    end if;
    for place in 1 .. cardinality(lines) loop
        insert into worker_tally (lane, worker_id, line_id, finished, busy_seconds, holding)
        values (tally_worker.lane, tally_worker.worker, lines[place], tally_worker.finished[place],
                tally_worker.busy_seconds[place], holdings[place])
        on conflict (lane, worker_id, line_id) do update
        set finished = excluded.finished, busy_seconds = excluded.busy_seconds, holding = excluded.holding;
    end loop;
end $$;

-- Add up what workers long gone have done in one lane: their rows go, the sums stay.
create function fold_tallies(lane smallint)
returns void language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    its_line int;
    its_finished bigint;
    its_seconds double precision;
begin
    for its_line, its_finished, its_seconds in
        delete from worker_tally using worker
        where worker_tally.lane = fold_tallies.lane
          and worker.id = worker_tally.worker_id and worker.ended_at < clock_now() - interval '1 hour'
        returning worker_tally.line_id, worker_tally.finished, worker_tally.busy_seconds
    loop
        insert into worker_tally (lane, worker_id, line_id, finished, busy_seconds, holding)
        values (fold_tallies.lane, '00000000-0000-0000-0000-000000000000', its_line, its_finished, its_seconds, 0)
        on conflict (lane, worker_id, line_id) do update
        set finished = worker_tally.finished + excluded.finished,
            busy_seconds = worker_tally.busy_seconds + excluded.busy_seconds;
    end loop;
end $$;

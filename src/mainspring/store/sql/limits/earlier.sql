-- How many runs of a schedule wait before one, counted up to a bound (see limits/ahead), and which have not ended.
-- Index: held_gate_idx, schedule_run_schedule_idx.
select (select count(*) from (
            select held.turn, held.ctid as position from held
            where held.lane = :lane::smallint and held.gate = :gate::text and held.turn <= :turn::bigint
            order by held.gate, held.turn limit :bound::int) as few
        where (few.turn, few.position) < (:turn::bigint, :position::tid)) as ahead,
       array(select schedule_run.run_id from schedule_run
             where schedule_run.lane = :lane::smallint and schedule_run.schedule_id = :schedule::uuid
               and not schedule_run.is_dead
               and not exists (
                   select from held
                   where held.lane = :lane::smallint and held.id = schedule_run.run_id
                     and held.gate is not distinct from :gate::text)
             order by schedule_run.schedule_id, schedule_run.run_id limit :most::int) as holders

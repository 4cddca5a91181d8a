-- Lift the fences of the next waiting runs of one lane, in the order of their ids, to a floor. Answers how many runs were
-- looked at and where the next batch begins, how many were below the floor, and how many of these were lifted: a run that
-- moves from one place to another meanwhile is not, and the batch has to be repeated.
-- Index: primary keys.
with in_ready as (
    select id, fence, 'ready' as place from ready
    where lane = :lane::smallint and id > :after::uuid order by id limit :count::int
), in_later as (
    select id, fence, 'later' as place from later
    where lane = :lane::smallint and id > :after::uuid order by id limit :count::int
), in_held as (
    select id, fence, 'held' as place from held
    where lane = :lane::smallint and id > :after::uuid order by id limit :count::int
), in_dead as (
    select id, fence, 'dead' as place from dead
    where lane = :lane::smallint and id > :after::uuid order by id limit :count::int
), batch as materialized (
    select id, fence, place from (
        select * from in_ready union all select * from in_later union all select * from in_held
        union all select * from in_dead) as waiting
    order by id limit :count::int
), lifted_ready as (
    update ready set fence = :floor::int
    where lane = :lane::smallint and fence < :floor::int and id = any (array(select id from batch where place = 'ready'))
    returning id
), lifted_later as (
    update later set fence = :floor::int
    where lane = :lane::smallint and fence < :floor::int and id = any (array(select id from batch where place = 'later'))
    returning id
), lifted_held as (
    update held set fence = :floor::int
    where lane = :lane::smallint and fence < :floor::int and id = any (array(select id from batch where place = 'held'))
    returning id
), lifted_dead as (
    update dead set fence = :floor::int
    where lane = :lane::smallint and fence < :floor::int and id = any (array(select id from batch where place = 'dead'))
    returning id
)
select count(*) as seen, count(*) filter (where fence < :floor::int) as low,
       (select count(*) from lifted_ready) + (select count(*) from lifted_later)
       + (select count(*) from lifted_held) + (select count(*) from lifted_dead) as lifted,
       (array_agg(id order by id desc))[1] as last
from batch

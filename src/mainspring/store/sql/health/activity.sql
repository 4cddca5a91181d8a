-- What there is to do and what is being done, counted up to a bound: for people who watch.
-- Index: primary keys; lease is small.
select (select count(*) from (select lane from ready where lane = any (:lanes::smallint[]) limit :bound::int) as few)
           as ready,
       (select count(*) from (select lane from later where lane = any (:lanes::smallint[]) limit :bound::int) as few)
           as scheduled,
       (select count(*) from (select lane from held where lane = any (:lanes::smallint[]) limit :bound::int) as few)
           as held,
       (select count(*) from (select lane from dead where lane = any (:lanes::smallint[]) limit :bound::int) as few)
           as dead,
       (select coalesce(sum(length(done) - bit_count(done)), 0)
        from lease where lane = any (:lanes::smallint[])) as running,
       (select count(*) from worker where state = 'live') as workers,
       clock_now() as now

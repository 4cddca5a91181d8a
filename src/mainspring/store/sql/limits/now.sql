-- The database's time: asked while the gates are locked, it never goes back from one who releases to the next.
select date_part('epoch', statement_now()) as now

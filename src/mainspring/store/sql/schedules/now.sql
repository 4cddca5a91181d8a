-- The database's clock.
select clock_now()

-- A worker says how many results it has not settled, and for how long it has tried in vain (null: it can settle).
update worker set unsettled = :unsettled::int,
                  unsettled_since = clock_now() - :failing_seconds::double precision * interval '1 second'
where id = :worker::uuid and state = 'live'

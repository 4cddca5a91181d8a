-- How many runs are in leases and not settled, of all tenants.  Index: lease primary key; leases are few.
select coalesce(sum(bit_length(done) - bit_count(done)), 0) from lease where lane = any (:lanes::smallint[])

-- Remove leases whose runs are all done.
-- Hot.  Index: lease primary key.
delete from lease where lane = :lane::smallint and id = any (:leases::uuid[]) and bit_count(done) = bit_length(done)

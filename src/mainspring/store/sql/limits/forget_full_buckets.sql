-- Forget the buckets of one lane that are full by now.
-- Index: bucket primary key.
delete from bucket where bucket.lane = :lane::smallint and bucket.full_at < date_part('epoch', clock_now()) - 60

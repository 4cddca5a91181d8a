-- How many tokens some gates of one lane had, and when. Those without a row are full.
-- Index: bucket primary key.
select bucket.gate, bucket.tokens, bucket.at from bucket
where bucket.lane = :lane::smallint and bucket.gate = any (:gates::text[])

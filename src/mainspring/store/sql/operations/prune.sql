-- Forget some operations that ended long ago; the audit keeps who started them and why. One that was cut off stays:
-- somebody may resume it.
-- Index: primary key. The operations are read as a whole: they are few, and it happens once an hour.
delete from operation
where id = any (array(select id from operation where ended_at < clock_now() - :older_than::interval limit :count::int))
returning id

-- The names behind job ids.
select id, name from job where id = any (:jobs::int[])

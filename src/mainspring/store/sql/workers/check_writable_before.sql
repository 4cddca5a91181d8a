-- The same for workers of programs before migration 21, which count their heartbeats elsewhere.
update worker set beat = beat where false

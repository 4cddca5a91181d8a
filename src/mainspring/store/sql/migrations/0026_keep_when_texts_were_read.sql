-- A schedule whose text counts from now ("every 45 minutes") remembers what now was, so that the same text, said again,
-- is known to be the same.
-- serves: 12

alter table schedule add column read_at timestamptz;
alter table schedule_version add column read_at timestamptz;

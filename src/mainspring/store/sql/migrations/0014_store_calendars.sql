-- Calendars that schedules share by name, and by which calendars and time zones a lane's cursors were computed.
-- serves: 12

-- A named set of days and times of day. Schedules name it; whoever computes with them looks it up.
create table calendar (
    tenant_id int not null,
    name text collate "C" not null,
    version int not null default 1,             -- every edit is one more
    revision bigint not null,                   -- of all calendars, when this one was written
    document text not null,                     -- its days: as schedule/canonical.py writes them
    created_at timestamptz not null default clock_now(),
    created_by text not null,
    changed_at timestamptz not null default clock_now(),
    changed_by text not null,
    primary key (tenant_id, name)
);

-- One row: how often calendars were written. Who writes one locks it until COMMIT, so revisions become visible in order,
-- and whoever has read one knows all that was written before.
create table calendar_revision (
    is_only_row boolean primary key default true constraint there_is_one_row check (is_only_row),
    revision bigint not null default 0
);
insert into calendar_revision default values;

-- The stored calendars that a schedule uses; null if it uses none.
alter table schedule add column calendars text[];
alter table schedule_version add column calendars text[];
create index schedule_calendars_idx on schedule (lane, tenant_id, name) where calendars is not null;

-- The highest revision among its schedule's calendars when it was computed. If it is another one now, it is stale.
alter table cursor add column calendars_revision bigint;

-- What all cursors of this lane were computed by, at least.
alter table lane add column calendars_revision bigint not null default 0;
alter table lane add column tzdata text not null default '';

-- On Citus, lanes can be moved to another node while work goes on, and every node gives the installation the same id.
-- serves: 12

-- Rows of history are only ever inserted, and go with their partition, so saying what identifies one costs nothing. Without
-- it, Citus would not copy history while it is written to.
alter table attempt replica identity full;
alter table log replica identity full;
do $$
declare
    part regclass;
begin
    for part in select inhrelid from pg_inherits where inhparent in ('attempt'::regclass, 'log'::regclass) loop
        execute format('alter table %s replica identity full', part);
    end loop;
end $$;

create or replace function add_history_partition(day date) returns boolean
language plpgsql security definer
set search_path = mainspring, pg_temp set lock_timeout = '2s' set timezone = 'UTC' as $$
declare
    parent text;
    partition_name text;
    has_made_one boolean := false;
begin
    if day is null or abs(day - clock_now()::date) > 40 then
        raise exception 'no partition of history is made for %: it is more than 40 days from today', day
            using errcode = 'invalid_parameter_value';
    end if;
    foreach parent in array array['attempt', 'log', 'occurrence'] loop
        partition_name := parent || '_' || to_char(day, 'YYYYMMDD');
        if to_regclass(partition_name) is null then
            execute format('create table %I (like %I including defaults including constraints including indexes)',
                           partition_name, parent);
            if parent <> 'occurrence' then   -- that has a primary key
                execute format('alter table %I replica identity full', partition_name);
            end if;
            execute format('alter table %I attach partition %I for values from (%L) to (%L)',
                           parent, partition_name, day::timestamptz, (day + 1)::timestamptz);
            has_made_one := true;
        end if;
    end loop;
    return has_made_one;
exception when duplicate_table or unique_violation or duplicate_object then
    return false;   -- another keeper made it at the same moment
end $$;

-- The database's own number is another one on each node of Citus, where nothing is copied by CREATE DATABASE … TEMPLATE.
create or replace function installation_id() returns text language sql stable set search_path = mainspring, pg_temp as $$
    select setting.value || case when exists (select from pg_extension where extname = 'citus') then ''
                                 else '-' || pg_database.oid end
    from setting cross join pg_database
    where setting.name = 'installation' and pg_database.datname = current_database()
$$;

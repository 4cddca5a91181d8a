-- A worker's role may make the partitions of history without owning the tables: the function acts as its owner, who is
-- the role that migrates. It makes days near the present only, and only for roles that were given it
-- (mainspring grants).
-- serves: 1

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
    foreach parent in array array['attempt', 'log'] loop
        partition_name := parent || '_' || to_char(day, 'YYYYMMDD');
        if to_regclass(partition_name) is null then
            execute format('create table %I (like %I including defaults including constraints including indexes)',
                           partition_name, parent);
            execute format('alter table %I attach partition %I for values from (%L) to (%L)',
                           parent, partition_name, day::timestamptz, (day + 1)::timestamptz);
            has_made_one := true;
        end if;
    end loop;
    return has_made_one;
exception when duplicate_table or unique_violation or duplicate_object then
    return false;   -- another keeper made it at the same moment
end $$;

revoke execute on function add_history_partition(date) from public;

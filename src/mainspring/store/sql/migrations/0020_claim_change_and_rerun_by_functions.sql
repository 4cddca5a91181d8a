-- Claims, changes and reruns are made by functions of one lane: on Citus, one command to the node that has it.
-- Leases are compressed: it costs a microsecond per run and takes a tenth off what is written ahead.
-- serves: 12
-- functions: b96d3e8ec0a265d4

-- Citus refuses this for a table that is distributed, so there the shards are told one by one.
do $$
declare
    is_distributed boolean := false;
begin
    if to_regclass('pg_catalog.pg_dist_partition') is not null then
        is_distributed := exists (select from pg_catalog.pg_dist_partition where logicalrelid = 'mainspring.lease'::regclass);
    end if;
    if is_distributed then
        if exists (select from run_command_on_shards(
                       'mainspring.lease', 'alter table %s alter column runs set storage extended') where not success) then
            raise exception 'a shard of lease could not be altered';
        end if;
        set local citus.enable_ddl_propagation = off;
    end if;
    alter table lease alter column runs set storage extended;
    if is_distributed then
        set local citus.enable_ddl_propagation = on;
    end if;
end $$;

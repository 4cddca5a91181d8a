-- What the present role lacks of these privileges on tables (some on one column only) and functions of ours. It is looked
-- up in the catalog, so it can be asked without any privilege.
select wanted.kind, wanted.privilege, wanted.object
from unnest(:kinds::text[], :privileges::text[], :objects::text[], :columns::text[])
    as wanted (kind, privilege, object, of_column)
join pg_namespace as place on place.nspname = :schema::text
left join pg_class as relation on relation.relnamespace = place.oid and relation.relname = wanted.object
left join pg_proc as routine on routine.pronamespace = place.oid
    and routine.proname || '(' || oidvectortypes(routine.proargtypes) || ')' = wanted.object
where not case when relation.oid is null and routine.oid is null then true   -- it came with another migration
               when not has_schema_privilege(place.oid, 'usage') then false
               when routine.oid is not null then has_function_privilege(routine.oid, wanted.privilege)
               when wanted.of_column is not null
                   then has_column_privilege(relation.oid, wanted.of_column, wanted.privilege)
               else has_table_privilege(relation.oid, wanted.privilege) end

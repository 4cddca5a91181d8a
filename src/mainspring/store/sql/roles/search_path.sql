-- What a role that is named like our schema finds first: the search path set for it in this database, and the statements
-- that make it `public`, or keep what it is by default. Null: nobody set one, so the server's own counts, which is
-- `"$user", public` unless someone changed it. No row: there is no such role.
select (select substr(entry, length('search_path=') + 1)
        from pg_db_role_setting as setting cross join unnest(setting.setconfig) as entry
        where starts_with(entry, 'search_path=')
          and setting.setrole in (role.oid, 0) and setting.setdatabase in (database.oid, 0)
        order by setting.setrole = 0, setting.setdatabase = 0 limit 1) as search_path,
       format('alter role %I in database %I set search_path = public', role.rolname, database.datname) as part,
       format('alter role %I in database %I set search_path = "$user", public', role.rolname, database.datname) as keep
from pg_roles as role cross join pg_database as database
where role.rolname = :schema::text and database.datname = current_database()

-- Remove a calendar.
delete from calendar where tenant_id = :tenant::int and name = :name::text returning name

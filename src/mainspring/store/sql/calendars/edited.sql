-- Which calendars of which tenants were written after a revision.
select tenant_id, name from calendar where revision > :since::bigint order by tenant_id, name

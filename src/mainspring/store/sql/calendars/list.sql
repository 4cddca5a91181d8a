-- The stored calendars of a tenant.
select {calendar} from calendar where tenant_id = :tenant::int order by name limit :count::int

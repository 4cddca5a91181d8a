-- Job names, for "did you mean".
select name from job where tenant_id = :tenant::int order by name limit 10000

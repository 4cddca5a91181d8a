-- After runs of which jobs others are submitted.
select distinct upstream from chain where tenant_id = :tenant::int

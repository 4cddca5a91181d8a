-- For which values breakers of a tenant, or of all tenants, are open.
-- Index: breaker_opening primary key.
select opening.id, opening.tenant_id, opening.job, opening.value, breaker.key,
       date_part('epoch', opening.opened_at) as opened_at, opening.opened_by, opening.failures, opening.attempts,
       opening.within_seconds as opened_within, opening.error, opening.reason, opening.has_probes,
       breaker.failures as threshold, breaker.within_seconds, breaker.failure_ratio, breaker.probe_after,
       breaker.max_probe_after
from breaker_opening as opening
join breaker on breaker.tenant_id = opening.tenant_id and breaker.job = opening.job
where opening.tenant_id = coalesce(:tenant::int, opening.tenant_id) order by opening.job, opening.value

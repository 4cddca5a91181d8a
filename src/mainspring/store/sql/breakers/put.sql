-- Set the circuit breaker of a job. Outcomes are counted anew: it has another number.
with written as (
    insert into breaker (id, tenant_id, job, key, failures, within_seconds, failure_ratio, probe_after, max_probe_after,
                         declared, changed_by, reason)
    values (:id::int, :tenant::int, :job::text, :key::text, :failures::int, :within::double precision,
            :failure_ratio::double precision, :probe_after::double precision, :max_probe_after::double precision,
            :declared::jsonb, :actor::text, :reason::text)
    on conflict (tenant_id, job) do update
    set id = excluded.id, key = excluded.key, failures = excluded.failures, within_seconds = excluded.within_seconds,
        failure_ratio = excluded.failure_ratio, probe_after = excluded.probe_after,
        max_probe_after = excluded.max_probe_after, declared = excluded.declared, changed_at = excluded.changed_at, changed_by = excluded.changed_by,
        reason = excluded.reason
    returning id
)
insert into audit (lane, tenant_id, actor, action, subject, detail)
select 0, :tenant::int, :actor::text, 'breaker.set', :subject::text, :detail::jsonb from written

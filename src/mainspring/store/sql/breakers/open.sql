-- Open the breaker of a job for values of its key. Where it is open, what is said about it is replaced if somebody says so by
-- hand; else nothing happens, and there is no row.
with written as (
    insert into breaker_opening (id, tenant_id, job, value, opened_by, failures, attempts, within_seconds, error, reason,
                                 has_probes)
    select each.id, :tenant::int, :job::text, each.value, :actor::text, each.failures, each.attempts,
           :within::double precision, each.error, :reason::text, :has_probes::boolean
    from unnest(:ids::int[], :key_values::text[], :failures::int[], :attempts::int[], :errors::text[])
        as each (id, value, failures, attempts, error)
    on conflict (tenant_id, job, value) do update
    set opened_by = excluded.opened_by, reason = excluded.reason, has_probes = excluded.has_probes
    where :by_hand::boolean
    returning value, failures, attempts, error
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'breaker.open', :subject::text,
           :detail::jsonb || jsonb_strip_nulls(jsonb_build_object(
               'value', written.value, 'failures', written.failures, 'attempts', written.attempts, 'error', written.error))
    from written
)
select value from written

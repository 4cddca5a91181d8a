-- Open the breaker of a job for a value of its key. If it is open there, what is said about it is replaced where somebody
-- says so; else nothing happens, and there is no row.
with written as (
    insert into breaker_opening (id, tenant_id, job, value, opened_by, failures, attempts, within_seconds, error, reason,
                                 has_probes)
    values (:id::int, :tenant::int, :job::text, :value::text, :actor::text, :failures::int, :attempts::int,
            :within::double precision, :error::text, :reason::text, :has_probes::boolean)
    on conflict (tenant_id, job, value) do update
    set opened_by = excluded.opened_by, reason = excluded.reason, has_probes = excluded.has_probes
    where :by_hand::boolean
    returning id
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'breaker.open', :subject::text, :detail::jsonb from written
)
select id from written

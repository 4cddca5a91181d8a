-- What happened to the breaker of a job, the newest first.
-- Index: audit_subject_idx.
select at, actor, action, detail::text as detail from audit
where lane = :lane::smallint and subject = :subject::text and tenant_id = :tenant::int order by at desc limit :count::int

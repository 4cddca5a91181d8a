-- What people did to one run.
-- Index: audit_subject_idx.
select at, actor, action, detail from audit
where lane = :lane::smallint and subject = :subject::text and tenant_id = :tenant::int order by at

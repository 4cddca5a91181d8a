-- At which gate a run waits, and its place there.
-- Index: held primary key.
select held.gate, held.turn from held
where held.lane = :lane::smallint and held.id = :run::uuid and held.tenant_id = :tenant::int and held.gate is not null

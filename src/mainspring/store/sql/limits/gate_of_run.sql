-- At which gate a run waits, its place there, and all the gates that it has to pass.
-- Index: held primary key.
select held.gate, held.turn, held.ctid as position, held.gates from held
where held.lane = :lane::smallint and held.id = :run::uuid and held.tenant_id = :tenant::int and held.gate is not null

-- Handlers that submit children: their runs wait for those once they have returned, and end when all of them have. Runs without
-- children have none of this.
-- Programs of before know no children: where one of them takes over a run that has some, it ends without waiting for them.
-- serves: 12
-- functions: 3c9e50eb6ad550ec

alter table dependency
    drop constraint what_happens_otherwise_is_known,
    add constraint what_happens_otherwise_is_known check (otherwise in ('cancel', 'hold', 'fail'));

alter table held add column result bytea;

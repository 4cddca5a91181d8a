-- What this database objects to what a client knows about it. The tables it reads stay locked until the transaction ends,
-- so nobody drops the schema in between.
select objection_to(:known::text::jsonb)

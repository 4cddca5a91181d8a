-- The database's clock, however long ago the transaction has begun.
select statement_now()

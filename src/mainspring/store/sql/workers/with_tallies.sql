-- Workers with a tally of their own.  Index: worker_tally's primary key; it has few rows.
select distinct worker_id as id from worker_tally where lane = any (:lanes::smallint[])

-- A run of a schedule says which occurrence it is for in 50 bytes instead of 170, which it carries from line to lease to
-- history; and the runs of one firing stay together in line. Workers say what they know: while one lives that does not
-- know the short form, the long one is written.
-- serves: 12
-- functions: 0f441cb2fe8ad9ff

alter table worker add column knows int not null default 0;

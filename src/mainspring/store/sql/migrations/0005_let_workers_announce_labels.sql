-- Workers announce labels; a line's labels are what it requires of them, a mode of delivery among them.
-- serves: 1

alter table worker add column labels text[] not null default '{}';

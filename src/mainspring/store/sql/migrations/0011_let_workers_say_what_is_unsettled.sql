-- Workers say how many results they have not settled yet, and since when they cannot.
-- serves: 8

alter table worker add column unsettled int not null default 0;
alter table worker add column unsettled_since timestamptz;

-- Write down how many tokens some gates of one lane have left.
-- Index: bucket primary key.
insert into bucket (lane, gate, tokens, at, full_at)
select :lane::smallint, spent.gate, spent.tokens, spent.at, spent.full_at
from unnest(:gates::text[], :tokens::double precision[], :instants::double precision[], :full::double precision[])
    as spent (gate, tokens, at, full_at)
on conflict (lane, gate) do update set tokens = excluded.tokens, at = excluded.at, full_at = excluded.full_at

-- Lanes in which something has expired, or idempotency or unique keys may be forgotten: one look for all of them.
-- Index: ready_expiry_idx, later_expiry_idx, held_expiry_idx, idempotency_check_idx, unique_key_check_idx.
select lane.lane,
       exists (select from ready where ready.lane = lane.lane /* and ready.lane = any (:lanes::smallint[]) */ and ready.expires_at <= clock_now())
       or exists (select from later where later.lane = lane.lane /* and later.lane = any (:lanes::smallint[]) */ and later.expires_at <= clock_now())
       or exists (select from held where held.lane = lane.lane /* and held.lane = any (:lanes::smallint[]) */ and held.expires_at <= clock_now()) as has_expired,
       exists (select from idempotency
               where idempotency.lane = lane.lane /* and idempotency.lane = any (:lanes::smallint[]) */ and idempotency.check_at <= clock_now()) as has_keys,
       exists (select from unique_key
               where unique_key.lane = lane.lane /* and unique_key.lane = any (:lanes::smallint[]) */ and unique_key.check_at <= clock_now()) as has_unique_keys
from lane where lane.lane = any (:lanes::smallint[])

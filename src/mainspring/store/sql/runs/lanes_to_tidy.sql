-- Lanes in which something has expired, or idempotency keys may be forgotten: one look for all of them.
-- Index: ready_expiry_idx, later_expiry_idx, held_expiry_idx, idempotency_check_idx.
select lanes.lane,
       exists (select from ready where ready.lane = lanes.lane and ready.expires_at <= clock_now())
       or exists (select from later where later.lane = lanes.lane and later.expires_at <= clock_now())
       or exists (select from held where held.lane = lanes.lane and held.expires_at <= clock_now()) as has_expired,
       exists (select from idempotency
               where idempotency.lane = lanes.lane and idempotency.check_at <= clock_now()) as has_keys
from unnest(:lanes::smallint[]) as lanes (lane)

-- What sets a run apart becomes an immutable function: Citus returns nothing else from a claim.
-- serves: 1

-- Written as text, since PostgreSQL calls jsonb_build_object and the epoch of an instant stable: a body with those would
-- make this function a call per claimed run instead of a part of the claim's plan.
create or replace function special_of(crashes smallint, first_started_at timestamptz, overrides jsonb)
returns text language sql immutable parallel safe as $$
    select case when crashes > 0 or first_started_at is not null or overrides is not null
                then '{"crashes": ' || crashes::text || ', "overrides": ' || coalesce(overrides::text, 'null')
                     || ', "first_started_at": '
                     || coalesce((extract(epoch from first_started_at - timestamptz 'epoch') * 1000000)::bigint::text,
                                 'null') || '}' end
$$;

-- Take a unique key of one lane for a new run; answers with the run that stands for it: this one ('new'), the one that holds the
-- key ('earlier'), or one that waits and got what this one brings ('replaced'). 'same': it was sent again, and had been taken.
-- Nothing happens to a key when its run is claimed or ends: whoever wants it looks where that run is. So claims and
-- settlements know of no keys, and wait for nobody's transaction.
create or replace function take_unique_key(lane smallint, newer run_row, newer_gates text, wish jsonb)
returns table (run_id uuid, verdict text)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    own_id uuid := newer.id;
    own_tenant int := newer.tenant_id;
    own_job int := newer.job_id;
    own_key text := wish ->> 'key';
    rule text := wish ->> 'rule';
    span interval := (wish ->> 'seconds')::double precision * interval '1 second';
    most interval := (wish ->> 'most')::double precision * interval '1 second';
    holder uuid;
    last_submission uuid;
    seen int;
    since timestamptz;
    place text;
    is_replaced boolean := false;
begin
    loop
        insert into unique_key (lane, tenant_id, job_id, key, run_id, submission, taken_at, check_at)
        values (take_unique_key.lane, own_tenant, own_job, own_key, own_id, own_id, statement_now(),
                statement_now() + greatest(span, interval '1 hour'))
        on conflict do nothing;
        if found then
            return query select own_id, 'new';
            return;
        end if;
        -- A statement of its own, and in order: see submit_runs. Not locked: whoever is answered with the run that there is
        -- keeps nobody else waiting.
        select unique_key.run_id, unique_key.submission, unique_key.revision, unique_key.taken_at
        into holder, last_submission, seen, since from unique_key
        where unique_key.lane = take_unique_key.lane and unique_key.tenant_id = own_tenant
          and unique_key.job_id = own_job and unique_key.key between own_key and own_key
        order by unique_key.key limit 1;
        if holder is null then   -- it was forgotten just now
            continue;
        end if;
        if last_submission = own_id then
            return query select holder, case when holder = own_id then 'same' else 'replaced' end;
            return;
        end if;
        if rule in ('waiting', 'waiting_or_running') then
            select state_of_holder(take_unique_key.lane, holder) into place;
        end if;
        if rule = 'within' and since + span > statement_now()
           or rule = 'waiting' and place = 'waiting'
           or rule = 'waiting_or_running' and place in ('waiting', 'running') then
            return query select holder, 'earlier';
            return;
        end if;
        -- Whoever took it, or requeued its run, since we looked has written a revision.
        update unique_key set submission = own_id, revision = unique_key.revision + 1
        where unique_key.lane = take_unique_key.lane and unique_key.tenant_id = own_tenant
          and unique_key.job_id = own_job and unique_key.key between own_key and own_key and unique_key.revision = seen;
        if not found then
            continue;
        end if;
        if rule = 'debounce' then
            select replace_waiting_run(take_unique_key.lane, holder, newer, newer_gates, since + most) into is_replaced;
        end if;
        if is_replaced then
            return query select holder, 'replaced';
            return;
        end if;
        update unique_key
        set run_id = own_id, taken_at = statement_now(), check_at = statement_now() + greatest(span, interval '1 hour')
        where unique_key.lane = take_unique_key.lane and unique_key.tenant_id = own_tenant
          and unique_key.job_id = own_job and unique_key.key between own_key and own_key;
        return query select own_id, 'new';
        return;
    end loop;
end $$;

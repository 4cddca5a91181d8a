-- Whether a dead letter of one lane may come back as far as its unique key is concerned; if so, it holds the key again. Not
-- while another run does, or one of those that come back with it. `kept` is what the run carries: the rule, a space, the key.
create or replace function resume_unique_key(
    lane smallint, dead_id uuid, own_tenant int, own_job int, kept text, resumed uuid[]
) returns boolean language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    rule text := split_part(kept, ' ', 1);
    own_key text := substr(kept, length(split_part(kept, ' ', 1)) + 2);
    holder uuid;
    place text;
begin
    if rule not in ('waiting', 'waiting_or_running') then   -- a period is over or not, whatever becomes of runs
        return true;
    end if;
    loop
        insert into unique_key (lane, tenant_id, job_id, key, run_id, submission, taken_at, check_at)
        values (resume_unique_key.lane, own_tenant, own_job, own_key, dead_id, dead_id, statement_now(),
                statement_now() + interval '1 hour')
        on conflict do nothing;
        if found then
            return true;
        end if;
        select unique_key.run_id into holder from unique_key
        where unique_key.lane = resume_unique_key.lane and unique_key.tenant_id = own_tenant
          and unique_key.job_id = own_job and unique_key.key between own_key and own_key
        order by unique_key.key limit 1 for update;
        exit when holder is not null;   -- else it was forgotten just now
    end loop;
    select state_of_holder(resume_unique_key.lane, holder) into place;
    if holder <> dead_id
       and (holder = any (resumed) or place = 'waiting' or rule = 'waiting_or_running' and place = 'running') then
        return false;
    end if;
    update unique_key
    set run_id = dead_id, revision = unique_key.revision + 1, taken_at = statement_now(),
        check_at = statement_now() + interval '1 hour'
    where unique_key.lane = resume_unique_key.lane and unique_key.tenant_id = own_tenant
      and unique_key.job_id = own_job and unique_key.key between own_key and own_key;
    return true;
end $$;

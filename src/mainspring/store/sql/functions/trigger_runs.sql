-- Submit runs after others of one lane that have ended, and forget the news of those: whoever deletes the news submits the
-- runs, so each is submitted once. Each item says in `news` what it follows from: run, fence and state. A refusal is what was
-- not submitted, and why: it goes to the audit. Answers with the new runs.
create or replace function trigger_runs(lane smallint, runs uuid[], news text[], items jsonb, refusals jsonb) returns setof uuid
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    taken text[];
begin
    with gone as (
        delete from chain_news
        where chain_news.lane = trigger_runs.lane and chain_news.run_id = any (trigger_runs.runs)
          and concat_ws(' ', chain_news.run_id, chain_news.fence, chain_news.state) = any (trigger_runs.news)
        returning concat_ws(' ', chain_news.run_id, chain_news.fence, chain_news.state) as news)
    select array_agg(gone.news) into taken from gone;
    if taken is null then
        return;
    end if;
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select trigger_runs.lane, refusal.tenant_id, refusal.actor, 'chain.refuse', refusal.subject, refusal.detail
    from jsonb_to_recordset(trigger_runs.refusals) as refusal (news text, tenant_id int, actor text, subject text, detail jsonb)
    where refusal.news = any (taken);
    return query
    insert into ready (lane, {run})
    select trigger_runs.lane, {run of run}
    from (
        select run_of(
            id => item.id, tenant_id => item.tenant_id, job_id => item.job_id, job_version => item.job_version,
            line_id => item.line_id, priority => item.priority, attempt => 0::smallint, fence => 0,
            crashes => 0::smallint, revision => 0, due_at => clock_now(),
            expires_at => clock_now() + least(item.max_age, item.start_within) * interval '1 second',
            codec => item.codec, payload => decode(item.payload, 'base64'), headers => item.headers, tags => null,
            idempotency_key => null, submitted_by => item.submitted_by, submitted_at => clock_now(), ready_at => null,
            retry_until => clock_now() + item.max_age * interval '1 second', first_started_at => null,
            overrides => null) as row
        from jsonb_to_recordset(trigger_runs.items) as item (
            news text, id uuid, tenant_id int, job_id int, job_version int, line_id int, priority smallint,
            max_age double precision, start_within double precision, codec smallint, payload text, headers jsonb,
            submitted_by text)
        where item.news = any (taken)) as built cross join lateral unnest(array[built.row]) as run
    returning ready.id;
end $$;

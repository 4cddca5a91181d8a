-- A schedule whose text counts from now ("every 45 minutes") remembers what now was, so that the same text, said again,
-- is known to be the same. A run of a schedule that is spread says when it was due, which its own due instant does not say
-- any more once it is retried.
-- serves: 12
-- functions: c04b5c726c3fb5c9

alter table schedule add column read_at timestamptz;
alter table schedule_version add column read_at timestamptz;

create or replace function backfill_schedule(
    lane int, schedule uuid, tenant int, instants timestamptz[], due timestamptz[], previous timestamptz[], runs uuid[],
    versions int[], chosen int[], templates jsonb, actor text, operation uuid
) returns setof uuid
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    own smallint := backfill_schedule.lane::smallint;
    past date[];
begin
    past := array(
        select day from (select distinct (instant at time zone 'UTC')::date as day from unnest(instants) as instant) as days
        where to_regclass('occurrence_' || to_char(day, 'YYYYMMDD')) is null);
    insert into occurrence_past (lane, schedule_id, nominal_at, due_at, run_id, version)
    select own, backfill_schedule.schedule, item.nominal_at, item.due_at, item.run_id, item.version
    from unnest(instants, due, runs, versions) as item (nominal_at, due_at, run_id, version)
    where (item.nominal_at at time zone 'UTC')::date = any (past)
    on conflict do nothing;
    insert into occurrence (lane, schedule_id, nominal_at, due_at, run_id, version)
    select own, backfill_schedule.schedule, item.nominal_at, item.due_at, item.run_id, item.version
    from unnest(instants, due, runs, versions) as item (nominal_at, due_at, run_id, version)
    where (item.nominal_at at time zone 'UTC')::date <> all (past)
      and (select occurrence_past.run_id from occurrence_past
           where occurrence_past.lane = own and occurrence_past.schedule_id = backfill_schedule.schedule
             and occurrence_past.nominal_at = item.nominal_at limit 1) is null
    on conflict do nothing;

    -- Only what the ledger has accepted from us becomes a run.
    return query
    insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, due_at, expires_at, retry_until,
                       codec, payload, headers, tags, submitted_by, overrides, ready_at, rank)
    select own, item.run_id, content.tenant_id, content.job_id, template.job_version, template.line_id,
           template.priority, clock_now(),
           clock_now() + least(template.max_age, template.start_within) * interval '1 second',
           clock_now() + template.max_age * interval '1 second',
           content.codec, content.payload,
           coalesce(template.headers, '{}') || jsonb_strip_nulls(jsonb_build_object(
               'schedule', content.name, 'schedule_version', item.version::text,
               'occurrence', instant_text(item.nominal_at), 'previous_occurrence', instant_text(item.previous_at),
               'occurrence_due', instant_text(nullif(item.due_at, item.nominal_at)),
               'backfilled_by', backfill_schedule.operation)),
           content.tags, backfill_schedule.actor, template.overrides, clock_now(), rank_now() + (item.place - 1) % 1000
    from unnest(instants, due, previous, runs, versions, chosen) with ordinality
        as item (nominal_at, due_at, previous_at, run_id, version, template, place)
    cross join lateral jsonb_to_record(templates -> item.template) as template (
        job_version int, line_id int, priority smallint, max_age double precision, start_within double precision,
        overrides jsonb, headers jsonb)
    cross join lateral (
        (select schedule.tenant_id, schedule.name, schedule.job_id, schedule.codec, schedule.payload, schedule.tags
         from schedule
         where schedule.lane = own and schedule.id = backfill_schedule.schedule
           and schedule.tenant_id = backfill_schedule.tenant and schedule.version = item.version limit 1)
        union all
        (select schedule_version.tenant_id, schedule_version.name, schedule_version.job_id, schedule_version.codec,
                schedule_version.payload, schedule_version.tags
         from schedule_version
         where schedule_version.lane = own and schedule_version.schedule_id = backfill_schedule.schedule
           and schedule_version.tenant_id = backfill_schedule.tenant and schedule_version.version = item.version limit 1)
    ) as content
    where item.run_id = any (
        array(select occurrence.run_id from occurrence
              where occurrence.lane = own and occurrence.schedule_id = backfill_schedule.schedule
                and occurrence.nominal_at = item.nominal_at)
        || array(select occurrence_past.run_id from occurrence_past
                 where occurrence_past.lane = own and occurrence_past.schedule_id = backfill_schedule.schedule
                   and occurrence_past.nominal_at = item.nominal_at))
    returning ready.id;
end $$;

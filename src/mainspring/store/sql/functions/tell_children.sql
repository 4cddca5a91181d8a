-- Runs of one lane have ended, or are dead letters now: note it for those that wait for them. Answers who does. Whoever
-- resolves dependencies sees to them after COMMIT (`store/resolving.py`): to release them here would lock rows that
-- other runs wait for, too, until our COMMIT. A row that has results stands for runs of which the child knows already.
create or replace function tell_children(lane smallint, runs uuid[]) returns uuid[]
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    children uuid[];
begin
    with told as (
        update dependency set is_news = true, check_at = null
        where dependency.lane = tell_children.lane and dependency.parent_id = any (tell_children.runs)
          and dependency.results is null
        returning dependency.child_id)
    select array_agg(distinct told.child_id) into children from told;
    return coalesce(children, '{}');
end $$;

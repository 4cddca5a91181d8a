-- Most of what moves runs of one lane is done by functions of separate statements, so that Citus does all of it where the lane
-- lives. What they call finds the clock wherever it is called: the nodes of Citus have no search path of ours.
-- serves: 12
-- functions: eaac2bb4967b6fd3

create or replace function rank_now() returns bigint language sql stable parallel safe
    as 'select (date_part(''epoch'', mainspring.clock_now()) * 1000000)::bigint';

create or replace function rank_bound() returns bigint language sql stable parallel safe
    as 'select (date_part(''epoch'', mainspring.clock_now()) * 1000000)::bigint + 1000';

create or replace function statement_now() returns timestamptz language sql stable parallel safe
    as 'select mainspring.clock_now() + (statement_timestamp() - now())';

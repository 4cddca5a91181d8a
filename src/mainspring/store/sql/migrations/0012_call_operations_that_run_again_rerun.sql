-- Operations that run again what is over are called rerun: retry is what a worker does with a failed attempt. Programs
-- that write the old word are still served, and what they wrote is read as the new one.
-- serves: 8

alter table operation drop constraint an_operation_is_of_a_known_kind;
alter table operation add constraint an_operation_is_of_a_known_kind
    check (kind in ('cancel', 'retry', 'rerun', 'change', 'requeue', 'purge'));

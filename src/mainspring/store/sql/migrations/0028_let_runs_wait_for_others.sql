-- Runs that wait for others to end, and flows: graphs of such runs. A run that is waited for tells by the transaction that
-- ends it; whoever resolves dependencies then releases those that wait for nothing more. Runs for which nobody waits have
-- none of this: one look per batch of results whether anybody waits for any run of the lane.
-- Programs of before tell nobody when they settle runs one by one: keepers of newer ones look after them.
-- serves: 12
-- functions: 08c36c4dd420529c

-- Which run waits until which others have ended: in the lane of the one that is waited for, so that the transaction that ends
-- it can say so here. When all is told, the one that waits goes on, or is cancelled, and the row goes.
create table dependency (
    lane smallint not null,                     -- of the parent
    parent_id uuid not null,
    child_id uuid not null,
    lanes smallint[] not null,                  -- of all parents of the child
    condition text not null
        constraint a_condition_is_known check (condition in ('success', 'failure', 'end')),
    otherwise text not null
        constraint what_happens_otherwise_is_known check (otherwise in ('cancel', 'hold')),
    inputs jsonb,                               -- arguments of the child that get the parent's result: [["rows"], ["parts", 3]]
    check_at timestamptz,                       -- when to look whether the parent is still there; null: it has ended
    checks smallint not null default 0,         -- so often that was done
    is_news boolean not null default false,     -- the parent has ended, and the child was not told
    has_ended boolean not null default false,   -- as it should have, which the child knows, and waits on
    is_lost boolean not null default false,     -- the parent is neither anywhere nor in history
    primary key (lane, parent_id, child_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
create index dependency_child_idx on dependency (lane, child_id);
create index dependency_pending_idx on dependency (lane, child_id) where not has_ended and not is_news;
create index dependency_news_idx on dependency (lane, child_id) where is_news;
create index dependency_check_idx on dependency (lane, check_at) where check_at is not null;

-- Runs that were submitted together, and who of them waits for whom, as people drew it. What becomes of the runs is theirs.
create table flow (
    lane smallint not null,
    id uuid not null,                           -- made as the id of a run is, in the lane of its runs
    tenant_id int not null,
    name text not null,
    revision int not null default 0,            -- one more with each retry, which replaces runs
    graph bytea not null,                       -- model/flow.py says how
    submitted_by text not null,
    submitted_at timestamptz not null default clock_now(),
    primary key (lane, id)
);
create index flow_list_idx on flow (lane, tenant_id, id) where tenant_id is not null;

-- One run at a time for each value of a key: see take_unique_key. Runs without such keys have none of this.
-- Programs of before do not know unique keys: what they submit is not compared, and what they requeue is.
-- serves: 12
-- functions: eb39c81fa937bae2

-- Which run was accepted last under a unique key, in the lane of that key, where the run is, too. Whether it still holds the key
-- is seen by where it is (take_unique_key): so nothing happens here when a run is claimed or ends.
create table unique_key (
    lane smallint not null,
    tenant_id int not null,
    job_id int not null,
    key text collate "C" not null,              -- an expression, a tab, and what it came to
    run_id uuid not null,
    submission uuid not null,                   -- the last one that took it, or replaced what its run brings
    revision int not null default 0,
    taken_at timestamptz not null,              -- periods count from it
    check_at timestamptz not null,              -- when to see whether it may go
    primary key (lane, tenant_id, job_id, key)
);
create index unique_key_check_idx on unique_key (lane, check_at) where check_at is not null;

-- Limits whose slots, starts or workers the values of a key share in turns: nobody's backlog delays another one by more than
-- its share. Runs without such limits have none of this.
-- Programs of before cannot read the names of such gates: set a share when the last of them is gone.
-- serves: 12
-- functions: 23fa0ef29e932449

alter table limit_rule
    add column share text not null default '',  -- whose values take turns; empty: nobody's
    drop constraint a_limit_limits_something,
    add constraint a_limit_limits_something check (most is not null or rate is not null or share <> '');

-- How many runs of a limit that shares workers are kept in line, in the lane of its gates: as many as workers take in a moment.
create table share_window (
    lane smallint not null,
    rule_id int not null,
    size double precision not null,
    filled int not null,                        -- so many were in line after the last release
    at double precision not null,               -- when that was, in seconds since 1970
    after text collate "C" not null default '',  -- whose values had their turn last, where there are very many
    primary key (lane, rule_id)
) with (fillfactor = 50);

-- Tenants have weights: workers take their lines in turns, by weight.
-- Programs of before serve the first tenant only.
-- serves: 12

alter table tenant add column weight int not null default 1
    constraint a_weight_is_positive check (weight between 1 and 1000);
alter table tenant add column changed_at timestamptz not null default clock_now();
alter table tenant add column changed_by text not null default 'mainspring';
alter table tenant add column reason text not null default '';

-- Claims, changes and reruns are made by functions of one lane: on Citus, one command to the node that has it.
-- Leases are compressed: it costs a microsecond per run and takes a tenth off what is written ahead.
-- serves: 12
-- functions: 0953f15125e7f55b

alter table lease alter column runs set storage extended;

-- Whether runs may be put in line ahead of their instant: not while a worker lives that would start them at once.
select not exists (select from worker where state = 'live' and not waits_for_rank)

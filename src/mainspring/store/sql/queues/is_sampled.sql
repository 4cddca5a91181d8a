-- Whether someone took samples a moment ago.
select exists (select from line_sample where at > clock_now() - :every::double precision * interval '1 second')

-- Whether someone took samples a moment ago.
select exists (select from load_sample
               where lane = :lane::smallint and at > clock_now() - :every::double precision * interval '1 second')

-- Runs that a handler has submitted are children of its run, if that is still its.
-- See the function.
select adopt_children(:lane::smallint, :tenant::int, :run::uuid, :lease::uuid, :place::int, :worker::uuid, :children::uuid[],
                      :are_new::boolean[], :condition::text)

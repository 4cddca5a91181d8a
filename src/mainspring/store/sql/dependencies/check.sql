-- Look whether runs of one lane that are waited for are still there.
-- See the function.
select check_dependencies(:lane::smallint, :count::int)

-- Give back the slots of settled runs that wait again, or are dead.
-- See the function.
select free_slots(:lane::smallint, :runs::uuid[], :state::run_state)

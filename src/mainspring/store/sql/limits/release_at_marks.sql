-- Let runs of one lane come in line that wait because their lines had too many.
-- Moves: release.  See the function.
select gate, line_id, priority, runs, has_more from release_at_marks(:lane::smallint, :gates::text[])

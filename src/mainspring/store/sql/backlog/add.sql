-- Write down which new runs of one lane wait under which caps.
-- See the function.
select add_entries(:lane::smallint, :entries::text::jsonb)

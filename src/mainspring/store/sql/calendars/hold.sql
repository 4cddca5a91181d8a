-- The same for whoever makes a schedule that uses them: until the transaction ends, nobody edits or deletes them.
select {calendar} from calendar where tenant_id = :tenant::int and name = any (:names::text[])
order by name for share

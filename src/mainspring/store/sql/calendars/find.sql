-- Stored calendars by their names.
select {calendar} from calendar where tenant_id = :tenant::int and name = any (:names::text[])

-- How often limits were written, and where: numbers mean something in one installation only.
select installation_id() || ' ' || revision as revision from limit_revision

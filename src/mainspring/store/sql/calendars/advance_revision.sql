-- Begin to write a calendar: whoever writes another one waits until this transaction ends.
update calendar_revision set revision = revision + 1 returning revision

-- Send wake-ups to whoever listens. Over a connection that waits for neither disk nor standby.
select pg_notify(channel, payload) from unnest(:channels::text[], :payloads::text[]) as wake_up (channel, payload)

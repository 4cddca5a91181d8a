"""What runs inside the peers' environments: one file per peer, with a no-op handler and a `submit(count)`."""

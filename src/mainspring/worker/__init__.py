"""Claims runs and executes them.

    supervisor ──starts, sends heartbeats for──► child
                                        claimer ──runs──► executor ──results──► flusher ──► database

The supervisor is a small process of its own: a handler that holds the GIL does not stop the heartbeats, a frozen child
does. Inside the child, the claimer takes batches out of the line into leases, the executor runs handlers, and the
flusher settles results in batches.
"""

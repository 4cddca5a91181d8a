"""Runs handlers in processes of their own: what happens there costs that attempt and nothing else.

    worker ──exec──► zygote ──fork──► child   one per run, made before it is needed
       ▲                │               ▲ │
       │◄─forked, exited┘               │ └── whatever the handler starts
       └────────── request, answers ────┘     (a socket), output (two pipes)

The *zygote* is a fresh interpreter: it imports the application once and then only forks, kills and reaps. It never
has a second thread, so a fork is safe, and a child is ready to run a handler after a millisecond or two.

Who can be killed, and by whom. Each child leads a session and adopts the orphans among its descendants (it is their
*subreaper*), so from the child every descendant can be found, those that left its session included. The zygote adopts
the orphans of children that are gone; nobody else's: so whatever it finds among its own children without having
forked it belongs to a run that has ended, and is killed. If the worker goes, the zygote kills all there is and ends;
if the zygote goes, its children are killed by the kernel.

What is trusted: the zygote (it runs our code only, once the application is imported) and the kernel. What a child
says is not: its frames are bounded and checked, its exit is read from the kernel, its output cannot be mistaken for a
frame because it comes through other pipes. This is protection against accidents, not a sandbox: a handler has the
rights of its worker.
"""

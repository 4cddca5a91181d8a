"""For tests of applications, and of Mainspring itself: a clock that stands still, runs without a worker, no waiting.

clock = FrozenClock()
app = Mainspring(url_of_a_test_database, clock=clock)
await clock.freeze(app)                          # now SQL and Python agree, and only you move them

await send_invoice.options(delay=timedelta(hours=1)).submit(number=7)
assert await run_until_idle(app) == {}           # not due yet
await clock.advance(timedelta(hours=1))
assert await run_until_idle(app) == {"succeeded": 1}

with inline(app):                                # no database at all
    handle = await send_invoice.submit(number=8)
    assert await handle.result() == "sent"
"""

from mainspring.testing.frozen import FrozenClock
from mainspring.testing.idle import NotIdle, run_until_idle
from mainspring.testing.inline import inline

__all__ = ["FrozenClock", "NotIdle", "inline", "run_until_idle"]

"""A first application. Run it with `scripts/up` and watch; then change something and start it again.

mainspring run submit greet --arg name=Ada --wait
"""

import asyncio
import random
from datetime import UTC, datetime, timedelta

from mainspring import Context, Mainspring, RetryPolicy

app = Mainspring()

NAMES = ("Ada", "Grace", "Edsger", "Barbara", "Donald", "Margaret")
CITIES = ("Reykjavík", "Nairobi", "Lima", "Osaka")
EVERY = timedelta(seconds=5)


@app.job
async def greet(name: str) -> str:
    """An `async def` job runs in the worker's event loop, beside hundreds of others."""
    await asyncio.sleep(0.1)
    return f"Hello, {name}!"


@app.job
def count_words(text: str) -> int:
    """A plain `def` job runs in a thread, so it may block."""
    return len(text.split())


@app.job(retry=RetryPolicy(max_attempts=5, first_delay=timedelta(seconds=1)))
async def ask_weather(context: Context, city: str) -> str:
    """Fails now and then, as networks do, and is retried with growing pauses."""
    if random.random() < 0.4:
        raise ConnectionError(f"no answer from the weather service in {city}")
    return f"{city}: sunny, at attempt {context.attempt}"


@app.job
async def remind(what: str) -> str:
    """Submitted with a delay, see below: it waits in the database, not in a worker."""
    return f"Remember: {what}"


@app.job
async def tick(due_at: datetime | None = None) -> None:
    """Submits a little work, and its own next run five seconds later."""
    await greet.submit(random.choice(NAMES))
    await count_words.submit("to be or not to be")
    await ask_weather.submit(random.choice(CITIES))
    await remind.options(delay=timedelta(seconds=3)).submit("stretch your legs")

    # However often ticks are started, there is one chain of them: the key names the next full five seconds,
    # and submitting the same key again is answered with the run that has it.
    next_at = full_five_seconds_after(max(datetime.now(UTC), due_at or datetime.min.replace(tzinfo=UTC)))
    await tick.options(at=next_at, key=f"tick {next_at:%Y-%m-%d %H:%M:%S}").submit(next_at)


def full_five_seconds_after(at: datetime) -> datetime:
    return at - (at - datetime.min.replace(tzinfo=UTC)) % EVERY + EVERY

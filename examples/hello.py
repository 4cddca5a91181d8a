"""A first application. Run it with `scripts/up` and watch; then change something and start it again.

mainspring run submit greet --arg name=Ada --wait
"""

import asyncio
import random
from datetime import timedelta

from mainspring import Context, Mainspring, RetryPolicy

app = Mainspring()

NAMES = ("Ada", "Grace", "Edsger", "Barbara", "Donald", "Margaret")
CITIES = ("Reykjavík", "Nairobi", "Lima", "Osaka")


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


@app.job(schedule="every 5 seconds")
async def tick(context: Context) -> str:
    """Runs by its schedule, which takes effect when the application starts; submits a little work."""
    await greet.submit(random.choice(NAMES))
    await count_words.submit("to be or not to be")
    await ask_weather.submit(random.choice(CITIES))
    await remind.options(delay=timedelta(seconds=3)).submit("stretch your legs")
    return f"tick of {context.occurrence.nominal_at:%H:%M:%S}" if context.occurrence else "a tick by hand"


@app.job(schedule="every weekday at 09:00", zone="Europe/Berlin")
async def daily_report() -> str:
    """Try `mainspring schedule explain 'every weekday at 09:00'`, and `mainspring schedule show daily_report`."""
    return "Everybody was greeted."

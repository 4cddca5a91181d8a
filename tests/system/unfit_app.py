"""An application whose job has got another parameter than the one that schedules know."""

from mainspring import Mainspring

app = Mainspring()


@app.job(name="report")
async def report(month: int) -> None: ...


@app.job(name="unused")
async def unused() -> None: ...

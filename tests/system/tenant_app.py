"""An application whose code says for which tenant it is."""

from __future__ import annotations

from mainspring import Mainspring

app = Mainspring(tenant="acme")


@app.job
async def load() -> None: ...

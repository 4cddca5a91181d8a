from __future__ import annotations
import asyncio, pytest, asyncpg
from .test_migrating import *
@pytest.mark.parametrize("i", range(12))
async def test_stress(app, connection, tmp_path, i):
    programme = Programme(app)
    programme.gate.set()
    done = asyncio.Event()
    handles=[]
    async def produce():
        n=i*100000
        while not done.is_set():
            n+=10
            handles.extend(await programme.work.options(delay=0.001).submit_many([{"n":n+k,"fails":k%2} for k in range(10)]))
    with capture_logs() as logs:
        async with working(app):
            tasks=[asyncio.create_task(produce()) for _ in range(1)]
            while len(handles)<300: await asyncio.sleep(0.01)
            try:
                await migrate(connection, migrations=written(tmp_path, "0002_give_runs_a_colour.sql", NEXT))
            finally:
                n=len(handles)
                while len(handles)<n+100 and not any(t.done() for t in tasks): await asyncio.sleep(0.01)
                done.set(); await asyncio.gather(*tasks)
            for h in handles: await h.result(20)
    print([l for l in logs])
    assert not [l for l in logs if l["log_level"]=="error"]

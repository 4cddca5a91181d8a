// Graphile Worker: batches by addJobs, and the set-up its performance page gives. `install`, `submit COUNT WARM_UP` or `work`.
// It counts as the Python peers do, but writes its count every few milliseconds: Node maps no files into memory.
import { openSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { makeWorkerUtils, run, runMigrations } = createRequire(`${process.cwd()}/`)("graphile-worker");

const CALL = JSON.parse(process.env.PEERS_PAYLOAD);
const BATCH = Number(process.env.PEERS_BATCH);
const preset = {
  worker: {
    connectionString: process.env.DATABASE_URL,
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
};

async function submit(count, warmUp) {
  const utils = await makeWorkerUtils({ preset });
  const send = async (jobs) => {
    for (let left = jobs; left > 0; left -= BATCH) {
      await utils.addJobs(Array.from({ length: Math.min(BATCH, left) }, () => ({ identifier: "noop", payload: CALL })));
    }
  };
  const seconds = () => Number(process.hrtime.bigint()) / 1e9; // the machine's monotonic clock, as Python's
  await send(warmUp);
  console.log("warm");
  const lines = createInterface({ input: process.stdin });
  await new Promise((begin) => lines.once("line", begin));
  const began = seconds();
  await send(count);
  console.log(JSON.stringify({ submitted: count + warmUp, timed: count, began, ended: seconds() }));
  lines.close();
  await utils.release();
}

async function work() {
  const file = openSync(`${process.env.PEERS_COUNTS}/${process.pid}`, "w");
  const bytes = Buffer.alloc(8);
  let executed = 0n;
  setInterval(() => {
    bytes.writeBigUInt64LE(executed);
    writeSync(file, bytes, 0, 8, 0);
  }, 5).unref();
  const runner = await run({ preset, taskList: { noop: async () => void executed++ } });
  await runner.promise;
}

const [, , what, count, warmUp] = process.argv;
if (what === "submit") await submit(Number(count), Number(warmUp));
else if (what === "work") await work();
else await runMigrations({ preset });

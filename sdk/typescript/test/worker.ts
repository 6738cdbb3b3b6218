// A worker in a process of its own, for process.test.ts: what it does is named by its first argument.
import { acquire, createPaddock, guard, type PaddockError } from '../dist/index.js';

const [, , what, baseUrl, name] = process.argv as [string, string, string, string, string];
const paddock = createPaddock({ baseUrl });

/** write has the worker write under its token for as long as it may, and then once more, to show what the fence is for. */
async function write(): Promise<void> {
  const lease = await acquire(paddock, name, { ttlMs: 2_000 });
  lease.signal.addEventListener('abort', () => console.log(`aborted ${(lease.signal.reason as PaddockError).code}`));
  const put = (value: string) => paddock.writeFenced(name, { lock: name, fencing_token: lease.token, value });
  console.log(`token ${lease.token}`);
  try {
    for (let i = 0; ; i++) {
      lease.check();
      await put(`${i} of the worker`);
      console.log(`wrote ${i}`);
    }
  } catch (error) {
    console.log(`stopped ${(error as PaddockError).code}`);
  }
  await put('too late').then(
    () => console.log('wrote too late'),
    (error: PaddockError) => console.log(`refused ${error.code} ${error.status}`),
  );
}

/** forget leaves a lease behind that nobody releases, with nothing else to do. */
async function forget(): Promise<void> {
  await acquire(paddock, name, { ttlMs: 600_000 });
  console.log('forgot');
}

/** idle works under a guard by waiting for the loss only. */
async function idle(): Promise<void> {
  await guard(paddock, name, { ttlMs: 2_000 }, (lease) => {
    console.log(`token ${lease.token}`);
    return lease.done;
  }).catch((error: PaddockError) => console.log(`lost ${error.code}`));
}

const works: Record<string, () => Promise<void>> = { write, forget, idle };
await works[what]!();

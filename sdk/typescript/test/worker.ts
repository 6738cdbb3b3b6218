// A worker for process.test.ts in its own process. Its first argument names what it does.
import { acquire, campaign, createPaddock, guard, openSession, type Lease, type Options, type PaddockError } from '../dist/index.js';

const [, , action, baseUrl, name] = process.argv as [string, string, string, string, string];
const paddock = createPaddock({ baseUrl });

/** write writes under its token until the lease is lost, and then once more, which the fence must reject. */
async function write(lease: Lease): Promise<void> {
  lease.signal.addEventListener('abort', () => console.log(`aborted ${(lease.signal.reason as PaddockError).code}`));
  const put = (value: string) => paddock.writeFenced(name, { lock: name, fencing_token: lease.token, value });
  console.log(`token ${lease.token}`);
  try {
    for (let i = 0; ; i++) {
      lease.check();
      await put(`${i} from the worker`);
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

/** abandon acquires a lease, never releases it and has nothing else to do. */
async function abandon(): Promise<void> {
  await acquire(paddock, name, { ttlMs: 600_000 });
  console.log('abandoned');
}

/** abandonSeveral abandons leases of three clients, whose hubs call at different times. */
async function abandonSeveral(): Promise<void> {
  for (let i = 0; i < 3; i++) {
    await acquire(createPaddock({ baseUrl }), `${name}-${i}`, { ttlMs: 600_000 });
    await new Promise((resolve) => setTimeout(resolve, 2_500));
  }
}

/** awaitEnd has nothing else to do than to await the end of a lease or a session. */
async function awaitEnd(held: Pick<Lease, 'done' | 'err'>, token: number): Promise<void> {
  console.log(`token ${token}`);
  await held.done;
  console.log(`lost ${held.err?.code}`);
}

/** awaitSession awaits the end of a session. */
async function awaitSession(): Promise<void> {
  const session = await openSession(paddock, { ttlMs: 6_000 });
  const lease = await acquire(paddock, name, { session });
  await awaitEnd(session, lease.token);
}

/** awaitInSession awaits the end of a lease in a session. */
async function awaitInSession(): Promise<void> {
  const lease = await acquire(paddock, name, { session: await openSession(paddock, { ttlMs: 6_000 }) });
  await awaitEnd(lease, lease.token);
}

/** awaitLease awaits the end of a lease. */
async function awaitLease(): Promise<void> {
  const lease = await acquire(paddock, name, { ttlMs: 4_000 });
  await awaitEnd(lease, lease.token);
}

/** idle runs a guard whose work only waits for the loss. */
async function idle(options: Options): Promise<void> {
  await guard(paddock, name, options, (lease) => {
    console.log(`token ${lease.token}`);
    return lease.done;
  }).catch((error: PaddockError) => console.log(`lost ${error.code}`));
}

const actions: Record<string, () => Promise<void>> = {
  write: async () => write(await acquire(paddock, name, { ttlMs: 4_000 })),
  'write in a session': async () => write(await acquire(paddock, name, { session: await openSession(paddock, { ttlMs: 6_000 }) })),
  'write as the leader': async () => write(await campaign(paddock, name, 'worker', { ttlMs: 4_000 })),
  abandon,
  'abandon while it is watched': async () => {
    await abandon();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  },
  'await a lease': awaitLease,
  'await a lease in a session': awaitInSession,
  'await a session': awaitSession,
  'abandon in several clients': abandonSeveral,
  'abandon a session': async () => void (await acquire(paddock, name, { session: await openSession(paddock, { ttlMs: 600_000 }) })),
  idle: () => idle({ ttlMs: 4_000 }),
  'idle in a session': async () => idle({ session: await openSession(paddock, { ttlMs: 6_000 }) }),
};
await actions[action]!();

// A worker of the fleet with the TypeScript SDK. See doc.go. The first argument is the URL of the built SDK.
const [sdk, baseUrl, name, size] = process.argv.slice(2);
const { createPaddock, acquire, guard } = await import(sdk);

const paddock = createPaddock({ baseUrl });
const all = Array.from({ length: Number(size) }, (_, i) => i);
const say = (text) => console.log(text);

const held = await Promise.all(all.map((i) => acquire(paddock, `${name}:held:${i}`, {
  ttlMs: 15_000,
  retryMs: 30_000,
  onState: (state, error) => state === 'lost' && say(`lost ${name}:held:${i}: ${error.message}`),
})));
say('held');
const waiting = all.map((i) => guard(paddock, `${name}:queue`, { ttlMs: 15_000, waitMs: Infinity, holder: String(i) }, async () => {
  say(`turn ${i}`);
}).catch((error) => say(`lost turn ${i}: ${error.message}`)));
for await (const _ of process.stdin); // until it is closed
await Promise.all(held.map((lease) => lease.release().catch((error) => say(`lost ${lease.name}: ${error.message}`))));
await Promise.all(waiting);

/** randomUUID returns a random UUID of version 4. */
export async function randomUUID(): Promise<string> {
  const bytes = (await webCrypto()).getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** webCrypto returns what draws random numbers. Node 18 does not have it where everybody else does. */
async function webCrypto(): Promise<Crypto> {
  return globalThis.crypto ?? (await builtin<{ webcrypto: Crypto }>('node:crypto')).webcrypto;
}

/** ourselves returns who we are, for people: host name and process id, or the page's host in a browser. */
export async function ourselves(): Promise<string> {
  const pid = node()?.pid;
  if (pid === undefined) {
    return `a page of ${globalThis.location?.host || 'no host'}`;
  }
  return `${(await builtin<{ hostname(): string }>('node:os')).hostname()}:${pid}`;
}

/** expectMany keeps Node from taking it for a leak that more than ten leases follow one signal, as they do the one that ends a process. */
export async function expectMany(signal: AbortSignal): Promise<void> {
  if (node()) {
    const { setMaxListeners } = await builtin<{ setMaxListeners(n: number, signal: AbortSignal): void }>('node:events');
    setMaxListeners(0, signal);
  }
}

/** node returns the process where this is Node, or what has its modules. */
function node(): { pid: number } | undefined {
  const { process } = globalThis as { process?: { pid: number; versions?: { node?: string } } };
  return process?.versions?.node === undefined ? undefined : process;
}

/** builtin imports one of Node's modules. Bundlers for browsers, where this is never called, leave it alone. */
async function builtin<T>(name: string): Promise<T> {
  return (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as T;
}

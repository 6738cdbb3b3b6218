/** randomUUID returns a random UUID of version 4. */
export async function randomUUID(): Promise<string> {
  const bytes = (await webCrypto()).getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** webCrypto returns the Web Crypto API, which is not a global in Node 18. */
async function webCrypto(): Promise<Crypto> {
  return globalThis.crypto ?? (await builtin<{ webcrypto: Crypto }>('node:crypto')).webcrypto;
}

/**
 * defaultHolder returns a display name for this process, and for a piece of work in it: host name, process ID and the
 * label, if there is one; or the page's host in a browser.
 */
export async function defaultHolder(label?: string): Promise<string> {
  const pid = node()?.pid;
  if (pid === undefined) {
    return `a page of ${globalThis.location?.host || 'no host'}`;
  }
  return `${(await builtin<{ hostname(): string }>('node:os')).hostname()}:${pid}${label ? `:${label}` : ''}`;
}

/** allowManyListeners stops Node from reporting a leak when more than ten leases listen to one signal. */
export async function allowManyListeners(signal: AbortSignal): Promise<void> {
  if (node()) {
    const { setMaxListeners } = await builtin<{ setMaxListeners(n: number, signal: AbortSignal): void }>('node:events');
    setMaxListeners(0, signal);
  }
}

/** A TaskStorage has the task of the work that runs. */
interface TaskStorage {
  getStore(): string | undefined;
  run<T>(task: string, work: () => T): T;
}

let storage: Promise<TaskStorage> | undefined;

/** taskStorage returns the one storage of tasks in Node or a compatible runtime; a browser has none. */
export async function taskStorage(): Promise<TaskStorage | undefined> {
  if (node()) {
    storage ??= builtin<{ AsyncLocalStorage: new () => TaskStorage }>('node:async_hooks')
      .then(({ AsyncLocalStorage }) => new AsyncLocalStorage());
  }
  return storage;
}

/** environment returns the variable of the process, in Node or a compatible runtime. */
export function environment(name: string): string | undefined {
  return node()?.env[name];
}

/** node returns the process object in Node or a compatible runtime. */
export function node(): Process | undefined {
  const { process } = globalThis as { process?: Process & { versions?: { node?: string } } };
  return process?.versions?.node === undefined ? undefined : process;
}

interface Process {
  pid: number;
  env: Record<string, string | undefined>;
}

/** unref lets the process exit before the timer fires, in Node. */
export function unref(timer: ReturnType<typeof setTimeout>): void {
  (timer as { unref?(): void }).unref?.();
}

/** builtin imports a module of Node. It is never called in browsers; the comments keep bundlers from resolving it. */
export async function builtin<T>(name: string): Promise<T> {
  return (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as T;
}

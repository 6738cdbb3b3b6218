import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';

import { until } from './service.js';

const { PADDOCK_BIN: binary, PADDOCK_TEST_DATABASE_URL: database, ...environment } = process.env as Record<string, string>;

/** A Line of the log of the service, with some of its members. */
interface Line {
  msg: string;
  address?: string;
  added?: string[] | null;
  dropped?: string[] | null;
  path?: string;
  key?: string;
  status?: number;
}

/** temporaryFolder returns a folder that is removed after the test. Its path is short enough for one of a socket. */
export function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'paddock-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** A Replica is a paddock serve with the database of the other tests. Its log has the requests with an unknown key, too. */
export class Replica {
  readonly #lines: Line[] = [];
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  private constructor(listen: string, flags: string[]) {
    const args = ['serve', '--database-url', database!, '--listen', listen, '--log-level', 'debug', ...flags];
    this.#child = spawn(binary!, args, { stdio: ['ignore', 'ignore', 'pipe'], env: environment });
    createInterface({ input: this.#child.stderr! }).on('line', (line) => this.#lines.push(JSON.parse(line) as Line));
    this.#exited = once(this.#child, 'exit');
  }

  /** start resolves with a replica that is stopped after the test, and its base URL. */
  static async start(t: TestContext, listen = '127.0.0.1:0', flags: string[] = []): Promise<{ replica: Replica; baseUrl: string }> {
    const replica = new Replica(listen, flags);
    t.after(() => replica.stop());
    const { address } = await replica.logged('listening');
    return { replica, baseUrl: address!.startsWith('unix:') ? address! : `http://${address}` };
  }

  /** stop ends it, also if it was killed or is frozen. */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    this.#child.kill('SIGCONT');
    await this.#exited;
  }

  /** kill ends it without a shutdown. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** freeze stops it, with open connections, until `stop`. */
  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  /** log returns the lines of the log with the message. */
  log(message: string): Line[] {
    return this.#lines.filter(({ msg }) => msg === message);
  }

  /** logged resolves with the first line of the log with the message that matches. */
  logged(message: string, matches: (line: Line) => boolean = () => true): Promise<Line> {
    return until(`the log has ${message}`, () => this.log(message).find(matches));
  }
}

/** A KeyedReplica is a Replica that requires an API key. */
export class KeyedReplica {
  private constructor(readonly replica: Replica, readonly baseUrl: string, private readonly authFile: string) {}

  /** start resolves with a replica that is stopped after the test. */
  static async start(t: TestContext): Promise<KeyedReplica> {
    const authFile = join(temporaryFolder(t), 'keys.json');
    writeFileSync(authFile, '{"keys": []}');
    const { replica, baseUrl } = await Replica.start(t, undefined, ['--auth-file', authFile]);
    return new KeyedReplica(replica, baseUrl, authFile);
  }

  /** newKey makes a key, and resolves with it when the service knows it. */
  async newKey(role = 'lock', name = 'tests'): Promise<string> {
    const key = (await this.#run('new', '--role', role, name)).trim();
    await this.replica.logged('loaded the auth file', ({ added }) => added?.includes(idOf(key)) ?? false);
    return key;
  }

  /** revoke revokes the key, and resolves when the service refuses it. */
  async revoke(key: string): Promise<void> {
    await this.#run('revoke', idOf(key));
    await this.replica.logged('loaded the auth file', ({ dropped }) => dropped?.includes(idOf(key)) ?? false);
  }

  async #run(verb: string, ...args: string[]): Promise<string> {
    return (await promisify(execFile)(binary!, ['key', verb, '--auth-file', this.authFile, ...args], { env: environment })).stdout;
  }

  /**
   * answered resolves with the requests about the lock that were answered: the id of the key, if the service accepted it, and
   * the status.
   */
  async answered(name: string, count: number): Promise<[id: string | undefined, status: number][]> {
    const lines = () => this.replica.log('request').filter(({ path }) => path!.includes(name));
    await until(`${count} requests are logged`, () => lines().length >= count);
    return lines().map(({ key, status }) => [key, status!]);
  }
}

/** idOf returns the public part of a key. */
export function idOf(key: string): string {
  return key.split('_')[1]!;
}

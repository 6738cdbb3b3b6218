import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Replica } from './replica.js';
import { direct, kinds, lockEvents, serviceUrl, unique } from './service.js';

/**
 * page is the page under test: it acquires a lock, observes a renewal and a revocation, then those of a session, and posts
 * a report.
 */
const page = (name: string) => `<!doctype html><title>Paddock</title>
<script type="importmap">{"imports": {"openapi-fetch": "/openapi-fetch.js", "@paddock-lock/sdk": "/dist/index.js"}}</script>
<script type="module">
  import { acquire, createPaddock, guard, openSession } from '@paddock-lock/sdk';
  const report = { states: [] };
  const paddock = createPaddock({ baseUrl: '' });
  try {
    const options = { ttlMs: 3000, onState: (state) => report.states.push(state) };
    await guard(paddock, '${name}', options, async (lease) => {
      report.holder = lease.holder;
      const first = (await paddock.lock(lease.name)).leases[0].expires_at;
      while ((await paddock.lock(lease.name)).leases[0].expires_at === first) {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      report.renewed = lease.held();
      await paddock.revoke(lease.name, { fencing_token: lease.token, reason: 'revoked by the test' });
      await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
      report.early = lease.remainingMs > 0;
      lease.check();
    });
  } catch (error) {
    Object.assign(report, { code: error.code, ended: error.ended, message: String(error) });
  }
  try {
    const renewed = new Promise((resolve) => report.onRenewed = resolve);
    const session = await openSession(paddock, { ttlMs: 3000, onRenewed: report.onRenewed });
    const lease = await acquire(paddock, '${name}:in-session', { session });
    await renewed;
    lease.check();
    await paddock.revokeSession(session.ref, { reason: 'revoked by the test' });
    await lease.done;
    report.session = [lease.err.code, session.err.code, session.err.ended];
  } catch (error) {
    report.session = String(error);
  }
  await fetch('/report', { method: 'POST', body: JSON.stringify(report) });
</script>`;

/**
 * otherPage is a page that uses a service of another origin, and another one that allows it. It reports how often it was
 * refused.
 */
const otherPage = (refusing: string, allowing: string, name: string) => `<!doctype html><title>Paddock</title>
<script type="importmap">{"imports": {"openapi-fetch": "/openapi-fetch.js", "@paddock-lock/sdk": "/dist/index.js"}}</script>
<script type="module">
  import { acquire, createPaddock } from '@paddock-lock/sdk';
  const report = { retries: 0 };
  const refused = createPaddock({ baseUrl: '${refusing}', key: 'pk_x_y' });
  await acquire(refused, '${name}', { waitMs: 5000, onRetry: () => report.retries++ }).catch((error) => Object.assign(report, { code: error.code, detail: error.detail }));
  try {
    const lease = await acquire(createPaddock({ baseUrl: '${allowing}', key: 'pk_x_y' }), '${name}');
    await lease.release();
    report.token = lease.token;
    await acquire(createPaddock({ baseUrl: 'http://127.0.0.1:1' }), '${name}', { retryMs: 300 }).catch((error) => { report.away = error.code; });
  } catch (error) {
    report.failed = String(error);
  }
  await fetch('/report', { method: 'POST', body: JSON.stringify(report) });
</script>`;

/** A PageServer serves the page and the built SDK, and forwards all other requests to the service, from the same origin. */
class PageServer {
  readonly report: Promise<Record<string, unknown>>;
  #resolve!: (report: Record<string, unknown>) => void;
  readonly server = createServer((req, res) => this.#serve(req, res));

  constructor(private readonly page: () => string) {
    this.report = new Promise((resolve) => (this.#resolve = resolve));
  }

  get host(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  #serve(req: IncomingMessage, res: ServerResponse): void {
    const url = req.url ?? '/';
    const script = /^\/dist\/([a-z]+\.js)$/.exec(url)?.[1];
    if (url === '/') {
      res.setHeader('Content-Type', 'text/html').end(this.page());
    } else if (script) {
      send(res, `../dist/${script}`);
    } else if (url === '/openapi-fetch.js') {
      send(res, '../node_modules/openapi-fetch/dist/index.mjs');
    } else if (url === '/report') {
      this.#receive(req, res);
    } else {
      forwardRequest(req, res);
    }
  }

  #receive(req: IncomingMessage, res: ServerResponse): void {
    let text = '';
    req.on('data', (part) => (text += String(part)));
    req.on('end', () => {
      res.end();
      this.#resolve(JSON.parse(text) as Record<string, unknown>);
    });
  }
}

function send(res: ServerResponse, path: string): void {
  res.setHeader('Content-Type', 'text/javascript').end(readFileSync(new URL(path, import.meta.url)));
}

function forwardRequest(req: IncomingMessage, res: ServerResponse): void {
  const { method, headers } = req;
  const onward = forward(serviceUrl + req.url, { method, headers }, (response) => {
    res.writeHead(response.statusCode ?? 502, response.headers);
    response.pipe(res);
  });
  onward.on('error', () => res.destroy()); // the page sees a lost response, as behind any proxy
  req.pipe(onward);
}

/** chromium starts a browser with its own profile in the folder. */
function chromium(url: string, folder: string): ChildProcess {
  const programs = ['/usr/lib/chromium/chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];
  const found = programs.find((name) => spawnSync(name, ['--version']).status === 0);
  assert.ok(found, 'This test needs Chromium: apt-get install -y chromium');
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-component-update',
    '--disable-background-networking', '--disable-quic', `--user-data-dir=${folder}`];
  return spawn(found, [...flags, url], { stdio: 'ignore', detached: true, env: { ...process.env, TMPDIR: folder } });
}

/** end stops the browser with all its processes and waits for its exit. */
async function end(browser: ChildProcess): Promise<void> {
  if (browser.exitCode === null && browser.signalCode === null) {
    const exited = once(browser, 'exit');
    process.kill(-browser.pid!, 'SIGTERM');
    const late = setTimeout(() => process.kill(-browser.pid!, 'SIGKILL'), 10_000);
    await exited;
    clearTimeout(late);
  }
}

/** reportOf opens the page in a browser, and resolves with its report. */
async function reportOf(t: TestContext, site: PageServer): Promise<Record<string, unknown>> {
  const folder = mkdtempSync(join(tmpdir(), 'paddock-browser-'));
  const browser = chromium(`http://${site.host}/`, folder);
  t.after(async () => {
    await end(browser);
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  return await Promise.race([site.report, sleep(90_000, { message: 'no report within 90 s' }, { ref: false })]);
}

/** opened returns a listening server of the page. */
async function opened(t: TestContext, page: () => string): Promise<PageServer> {
  const site = new PageServer(page);
  site.server.listen(0, '127.0.0.1');
  await once(site.server, 'listening');
  t.after(() => {
    site.server.closeAllConnections();
    site.server.close();
  });
  return site;
}

test('in a browser, a lease is acquired, renewed and revoked, and its work stops', { timeout: 120_000 }, async (t) => {
  const name = unique('browser');
  const site = await opened(t, () => page(name));
  const { states, message, ...report } = await reportOf(t, site) as { states?: string[]; message: string };
  const session = ['lease_lost', 'session_lost', 'revoked'];
  assert.deepEqual(report, { holder: `a page of ${site.host}`, renewed: true, early: true, code: 'lease_lost', ended: 'revoked', session }, message);
  assert.equal(states?.at(-1), 'lost');
  assert.deepEqual(await kinds(direct(), name), ['granted', 'revoked']);
});

test('a page of another origin is told at once what to do, and works when its origin is allowed', { timeout: 120_000 }, async (t) => {
  const name = unique('other-origin');
  let allowing = '';
  const site = await opened(t, () => otherPage(serviceUrl, allowing, name));
  const origin = `http://${site.host}`;
  allowing = (await Replica.start(t, undefined, ['--cors-origin', origin])).baseUrl;
  const { detail, token, ...report } = await reportOf(t, site);
  assert.deepEqual(report, { retries: 0, code: 'cross_origin', away: 'unknown_outcome' });
  assert.match(String(detail), new RegExp(`${origin}.*--cors-origin ${origin}`));
  const events = await lockEvents(direct(), name);
  assert.deepEqual(events.map(({ kind, fencing_token }) => [kind, fencing_token]), [['granted', token], ['released', token]]);
});

import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

import { serviceUrl } from './service.js';

/** What a proxy does: forward all data; swallow it and keep connections open; or refuse connections. */
export type Mode = 'pass' | 'swallow' | 'refuse';

/** A Proxy between a client and the service that breaks connections on request. */
export class Proxy {
  readonly #server = createServer((client) => this.#accept(client));
  readonly #sockets = new Set<Socket>();
  #mode: Mode = 'pass';
  /** How many of the next responses to drop after the service has sent them. */
  cuts = 0;

  private constructor(private readonly target: string) {}

  /** open resolves with a listening proxy. */
  static async open(target = serviceUrl): Promise<Proxy> {
    const proxy = new Proxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  set mode(mode: Mode) {
    this.#mode = mode;
    if (mode === 'refuse') {
      this.#drop();
    }
  }

  /** close ends all connections. */
  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#drop();
    await closed;
  }

  #drop(): void {
    for (const socket of this.#sockets) {
      socket.destroy();
    }
  }

  #accept(client: Socket): void {
    if (this.#mode === 'refuse') {
      client.destroy();
      return;
    }
    const service = connect(Number(new URL(this.target).port), '127.0.0.1');
    this.#pipe(client, service, (bytes) => service.write(bytes));
    this.#pipe(service, client, (bytes) => {
      if (this.cuts > 0) {
        this.cuts--;
        client.destroy();
      } else {
        client.write(bytes);
      }
    });
  }

  #pipe(from: Socket, to: Socket, forward: (bytes: Buffer) => void): void {
    this.#sockets.add(from);
    from.on('data', (bytes) => {
      if (this.#mode === 'pass') {
        forward(bytes);
      }
    });
    from.on('error', () => from.destroy()); // the proxy closed the other side
    from.on('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
  }
}

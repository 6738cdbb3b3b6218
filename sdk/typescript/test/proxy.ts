import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

import { serviceUrl } from './service.js';

/** What a proxy does with what it is sent: pass it on; or swallow it, connections staying open; or refuse connections. */
export type Way = 'pass' | 'swallow' | 'refuse';

/** A Proxy stands between a client and the service, and breaks the line as it is told. */
export class Proxy {
  readonly #server = createServer((client) => this.#join(client));
  readonly #sockets = new Set<Socket>();
  #way: Way = 'pass';
  /** How many answers are still to be cut off, once the service has given them. */
  cuts = 0;

  /** open resolves with a proxy that listens. */
  static async open(): Promise<Proxy> {
    const proxy = new Proxy();
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  set way(way: Way) {
    this.#way = way;
    if (way === 'refuse') {
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

  #join(client: Socket): void {
    if (this.#way === 'refuse') {
      client.destroy();
      return;
    }
    const service = connect(Number(new URL(serviceUrl).port), '127.0.0.1');
    this.#carry(client, service, (bytes) => service.write(bytes));
    this.#carry(service, client, (bytes) => {
      if (this.cuts > 0) {
        this.cuts--;
        client.destroy();
      } else {
        client.write(bytes);
      }
    });
  }

  #carry(from: Socket, to: Socket, pass: (bytes: Buffer) => void): void {
    this.#sockets.add(from);
    from.on('data', (bytes) => {
      if (this.#way === 'pass') {
        pass(bytes);
      }
    });
    from.on('error', () => from.destroy()); // the other side broke the line, as it is here to do
    from.on('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
  }
}

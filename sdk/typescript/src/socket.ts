import { builtin } from './platform.js';

/** Http is what is used of node:http. */
interface Http {
  Agent: new (options: { keepAlive: boolean }) => object;
  request(options: object, respond: (message: IncomingMessage) => void): {
    on(event: 'error' | 'close', listener: (cause?: Error) => void): void;
    end(body: Uint8Array): void;
    destroy(cause: Error): void;
  };
}

/** Streams is what is used of node:stream. */
interface Streams {
  Readable: { toWeb(message: IncomingMessage): ReadableStream<Uint8Array> };
}

interface IncomingMessage {
  statusCode: number;
  statusMessage: string;
  headers: Record<string, string>;
  resume(): void;
}

/**
 * socketFetch returns a fetch function that sends all requests to the socket at the path, which Node's own fetch cannot do.
 * Like that one, it keeps connections open, and its errors have a cause. It follows no redirects.
 */
export function socketFetch(path: string): (request: Request) => Promise<Response> {
  let agent: object | undefined;
  return async (request) => {
    const [http, { Readable }] = await Promise.all([builtin<Http>('node:http'), builtin<Streams>('node:stream')]);
    agent ??= new http.Agent({ keepAlive: true });
    const { pathname, search } = new URL(request.url);
    const headers = Object.fromEntries(request.headers);
    const body = new Uint8Array(await request.arrayBuffer());
    request.signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const failed = (cause: unknown) => reject(new TypeError('fetch failed', { cause }));
      const sent = http.request({ agent, socketPath: path, method: request.method, path: pathname + search, headers }, (message) => {
        try {
          resolve(responseOf(message, Readable));
        } catch (error) {
          failed(error);
        }
      });
      sent.on('error', failed);
      // These listeners keep the request until the response ends: the signal of a collected Request is never aborted.
      const abort = () => sent.destroy(request.signal.reason as Error);
      request.signal.addEventListener('abort', abort);
      sent.on('close', () => request.signal.removeEventListener('abort', abort));
      sent.end(body);
    });
  };
}

/** responseOf returns the response. It throws for a status that a Response cannot have. */
function responseOf(message: IncomingMessage, Readable: Streams['Readable']): Response {
  const { statusCode: status, statusMessage: statusText, headers } = message;
  if ([204, 205, 304].includes(status)) { // has no body
    message.resume(); // so that the connection can be used again
    return new Response(null, { status, statusText, headers });
  }
  return new Response(Readable.toWeb(message), { status, statusText, headers });
}

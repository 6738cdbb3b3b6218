import type { Address } from './addresses.js';
import { PaddockError } from './error.js';
import { node } from './platform.js';

/**
 * refusedByBrowser returns the error for a page of another origin to which the browser shows no response, and undefined in
 * Node and if the service cannot be reached. Browsers report both in the same way, but let a page of any origin find out
 * whether `/livez` answers.
 */
export async function refusedByBrowser({ answered, base }: Address): Promise<PaddockError | undefined> {
  const page = globalThis.location?.origin;
  if (node() || answered || page === undefined || new URL(base).origin === page) {
    return undefined;
  }
  try {
    await fetch(`${base}/livez`, { mode: 'no-cors', credentials: 'omit', cache: 'no-store' });
  } catch {
    return undefined;
  }
  return new PaddockError('cross_origin', `The service at ${new URL(base).origin} does not answer pages of ${page}, so the browser refused the call. ` +
    `Start the service with --cors-origin ${page}, or serve the page and the service from one origin, behind one proxy.`);
}

import { checkKey } from './check.js';
import type { PaddockOptions } from './client.js';
import { invalid, PaddockError } from './error.js';

/** A KeySource has the API key to send, if there is one. */
export interface KeySource {
  /** Whether the key may be replaced while the program runs. */
  readonly changes: boolean;
  /**
   * Resolves with the key. refused says that the service has refused the one before. Rejects with `unavailable` if there is
   * no key that may be valid.
   */
  read(refused: boolean): Promise<string | undefined>;
}

/** keySource returns the source of the key in the options. It throws `invalid_request` for an invalid key. */
export function keySource({ key, headers = {} }: Pick<PaddockOptions, 'key' | 'headers'>): KeySource {
  if (key === undefined) {
    return { changes: false, read: async () => undefined };
  }
  if (Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')) {
    throw invalid('key', 'conflicts with the header Authorization; pass only one of them');
  }
  if (typeof key === 'string') {
    const fixed = checkKey(key);
    return { changes: false, read: async () => fixed };
  }
  let last: string | undefined;
  const read = async (refused: boolean) => {
    try {
      last = checkKey(await key());
    } catch (cause) {
      if (refused || last === undefined) {
        throw new PaddockError('unavailable', `${refused ? 'The service refused the API key, and it' : 'The API key'} cannot be read` +
          `: ${cause instanceof Error ? cause.message : String(cause)} Nothing was changed. Try again.`, { cause });
      }
    }
    return last;
  };
  return { changes: true, read };
}

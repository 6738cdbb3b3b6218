import { invalid } from './error.js';

/** longestName is the greatest length of a lock's name, and of a fenced resource's key. */
export const longestName = 200;

/**
 * checkName returns the name, or throws `invalid_request` if it cannot be a lock's or a key. The service checks it, too,
 * but would never see a name like '..': an address with that is another address.
 */
export function checkName(field: string, name: string): string {
  if (name.length > longestName) {
    throw invalid(field, `has ${name.length} characters; at most ${longestName} are allowed`);
  }
  if (!/^[A-Za-z0-9][A-Za-z0-9._:@-]*$/.test(name)) {
    throw invalid(field, 'must be of A-Z a-z 0-9 . _ : @ - and begin with a letter or a digit');
  }
  return name;
}

/** checkKey returns the API key, or throws `invalid_request`, which does not repeat it. */
export function checkKey(key: string): string {
  if (!/^[!-~]+$/.test(key)) {
    throw invalid('key', 'has a character that no API key has, or none at all; give it as it was given to you, without what is around it');
  }
  return key;
}

/** checkBaseUrl returns the URL in full, or throws `invalid_request`, which does not repeat it: it may hold a password. */
export function checkBaseUrl(text: string): string {
  let url: URL;
  try {
    url = new URL(text, globalThis.location?.href);
  } catch {
    throw invalid('baseUrl', 'is not a URL; give one like http://127.0.0.1:8080');
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw invalid('baseUrl', 'must begin with http:// or https://');
  }
  if (url.username !== '' || url.password !== '') {
    throw invalid('baseUrl', 'must not hold a user name or a password; give an API key as key, anything else as a header');
  }
  if (url.search !== '' || url.hash !== '') {
    throw invalid('baseUrl', 'must end with the path, without ? and #');
  }
  return url.origin + url.pathname;
}

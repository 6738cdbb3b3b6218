import { expect, text } from './arguments.js';
import { invalid, type PaddockError } from './error.js';
import { node } from './platform.js';

/** maxNameLength is the maximum length of a lock's name and of a fenced resource's key. */
export const maxNameLength = 200;

/**
 * checkName returns the name, or throws `invalid_request` if it is not a valid lock name or key. The service checks
 * names as well, but never sees one like '..', which changes the URL's path.
 */
export function checkName(field: string, name: string): string {
  if (name.length > maxNameLength) {
    throw invalid(field, `has ${name.length} characters; at most ${maxNameLength} are allowed`);
  }
  if (!/^[A-Za-z0-9][A-Za-z0-9._:@-]*$/.test(name)) {
    throw invalid(field, 'must consist of A-Z a-z 0-9 . _ : @ - and start with a letter or a digit');
  }
  return name;
}

/** checkKey returns the API key, or throws `invalid_request`; the error does not repeat the key. */
export function checkKey(key: string): string {
  expect('key', key, text);
  if (!/^[!-~]+$/.test(key)) {
    throw invalid('key', 'is empty or has an invalid character; pass the API key exactly as you received it');
  }
  return key;
}

/**
 * checkBaseUrl returns the absolute URL, or throws the `wrong` one; the problem does not repeat the URL, which may contain a
 * password.
 */
export function checkBaseUrl(text: string, wrong: (problem: string) => PaddockError): string {
  let url: URL;
  try {
    url = new URL(text, globalThis.location?.href);
  } catch {
    throw wrong('is not a URL; pass one like http://127.0.0.1:8080');
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw wrong('must start with http:// or https://, or be a socket such as unix:/run/paddock.sock');
  }
  if (url.username !== '' || url.password !== '') {
    throw wrong('must not contain a user name or password; pass an API key as key and other credentials as headers');
  }
  if (url.search !== '' || url.hash !== '') {
    throw wrong('must not contain a query or a fragment');
  }
  return (url.origin + url.pathname).replace(/\/$/, '');
}

/**
 * checkSocket returns the path of a socket from a base URL such as unix:/run/paddock.sock, undefined for other URLs. It
 * throws the `wrong` one if the path is not absolute, and in a browser.
 */
export function checkSocket(baseUrl: string, wrong: (problem: string) => PaddockError): string | undefined {
  if (!baseUrl.startsWith('unix:')) {
    return undefined;
  }
  const path = baseUrl.slice('unix:'.length);
  if (!path.startsWith('/')) {
    throw wrong('is a socket without an absolute path; pass unix:/run/paddock.sock');
  }
  if (!node()) {
    throw wrong('is a socket in the file system, which works only in Node');
  }
  return path;
}

/**
 * notify calls a callback. An exception of the callback is rethrown in a microtask, as for an event listener, so that
 * it cannot break the caller.
 */
export function notify<Args extends unknown[]>(callback: ((...args: Args) => void) | undefined, ...args: Args): void {
  try {
    callback?.(...args);
  } catch (thrown) {
    queueMicrotask(() => {
      throw thrown;
    });
  }
}

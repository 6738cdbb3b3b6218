/** tell calls a callback. What that throws is thrown where nothing of ours is in the way, as with an event's listener. */
export function tell<Args extends unknown[]>(callback: ((...args: Args) => void) | undefined, ...args: Args): void {
  try {
    callback?.(...args);
  } catch (thrown) {
    queueMicrotask(() => {
      throw thrown;
    });
  }
}

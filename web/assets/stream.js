// Subscribes to the service's events, and reports the state of the subscription.

const syncTimeout = 10000; // ms for a connection to send a sync
const maxRetryDelay = 15000; // ms
const minRetryDelay = 500;
const resumeWindow = 60000; // ms after which missed events are skipped

// follow returns a closed stream of the events at the address. It calls
//   event(event)     for each event,
//   gap()            when events are missing,
//   sync()           when all earlier events have arrived,
//   changed(state)   with 'off', 'connecting', 'lost' while it reconnects, or 'open'.
// With resume it requests missed events when it reconnects.
export function follow({ address, kinds, resume, event, gap, sync, changed }) {
  let source, timer, cursor = '', tries = 0, closed = 0, skipped = false, state = 'off';

  function setState(next) {
    if (state === next) return;
    state = next;
    changed(state);
  }

  function stop() {
    clearTimeout(timer);
    source?.close();
    source = undefined;
  }

  function lost() {
    stop();
    closed ||= performance.now();
    setState('lost');
    const delay = Math.min(maxRetryDelay, minRetryDelay * 2 ** tries++);
    timer = setTimeout(connect, delay * (0.75 + Math.random() / 2));
  }

  // expectSync starts the timeout: a buffering proxy looks like a connection without events.
  function expectSync() {
    clearTimeout(timer);
    if (state !== 'open') timer = setTimeout(lost, syncTimeout);
  }

  function received(message) {
    cursor = message.lastEventId || cursor;
    expectSync();
  }

  function synced(message) {
    received(message);
    clearTimeout(timer);
    tries = closed = 0;
    if (skipped) gap();
    skipped = false;
    setState('open');
    sync();
  }

  function eventReceived(message) {
    received(message);
    event(JSON.parse(message.data));
  }

  function missed(message) {
    received(message);
    gap();
  }

  function connect() {
    stop();
    const at = new URL(address, location.href);
    if (closed && performance.now() - closed > resumeWindow || !resume) {
      skipped ||= Boolean(cursor);
      cursor = '';
    }
    if (cursor) at.searchParams.set('cursor', cursor);
    source = new EventSource(at);
    source.addEventListener('error', lost);
    source.addEventListener('sync', synced);
    source.addEventListener('gap', missed);
    for (const kind of kinds) source.addEventListener(kind, eventReceived);
    expectSync();
  }

  return {
    open() {
      tries = 0;
      setState('connecting');
      connect();
    },
    close() {
      if (state === 'off') return;
      stop();
      closed ||= performance.now();
      setState('off');
    },
  };
}

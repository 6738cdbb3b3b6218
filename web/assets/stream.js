// Subscribes to the service's events, and reports the state of the subscription. Of what an event says, only the holder is
// used, if the page is about one: the page is fetched again. So a connection begins with the events from now on, and its sync stands for all that were missed.

const syncTimeout = 10000; // ms for a connection to send a sync
const maxRetryDelay = 15000; // ms
const minRetryDelay = 500;

// follow returns a closed stream of the events at the address. It calls
//   news()           for each event, of the holder if there is one, and when events are missing or cannot be read,
//   sync()           when all earlier events have arrived,
//   changed(state)   with 'off', 'connecting', 'lost' while it reconnects, or 'open'.
export function follow({ address, kinds, holder, news, sync, changed }) {
  let source, timer, tries = 0, state = 'off';

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
    setState('lost');
    const delay = Math.min(maxRetryDelay, minRetryDelay * 2 ** tries++);
    timer = setTimeout(connect, delay * (0.75 + Math.random() / 2));
  }

  // expectSync starts the timeout: a buffering proxy looks like a connection without events.
  function expectSync() {
    clearTimeout(timer);
    if (state !== 'open') timer = setTimeout(lost, syncTimeout);
  }

  function received(event) {
    expectSync();
    if (!holder || !kinds.includes(event.type) || JSON.parse(event.data).holder === holder) news();
  }

  function synced() {
    clearTimeout(timer);
    tries = 0;
    setState('open');
    sync();
  }

  function connect() {
    stop();
    source = new EventSource(new URL(address, location.href));
    source.addEventListener('error', lost);
    source.addEventListener('sync', synced);
    for (const kind of [...kinds, 'gap', 'unreadable']) source.addEventListener(kind, received);
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
      setState('off');
    },
  };
}

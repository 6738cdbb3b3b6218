// Follows the service's events, and tells how that stands.

const patience = 10000; // ms for a connection to tell that it is up to date
const longest = 15000; // ms between two tries
const shortest = 500;
const memory = 60000; // ms for which it is worth to be told what was missed

// follow returns a stream of the events at the address, not open yet. It calls
//   event(event)  for each,
//   gap()         when some are missing,
//   sync()        when all that had happened has been told,
//   stands(how)   'off', 'connecting', 'lost' while it tries again, or 'open'.
// With resume it asks for what it has missed when it connects again.
export function follow({ address, kinds, resume, event, gap, sync, stands }) {
  let source, timer, cursor = '', tries = 0, closed = 0, skipped = false, how = 'off';

  function stand(now) {
    if (how === now) return;
    how = now;
    stands(how);
  }

  function stop() {
    clearTimeout(timer);
    source?.close();
    source = undefined;
  }

  function lost() {
    stop();
    closed ||= performance.now();
    stand('lost');
    const pause = Math.min(longest, shortest * 2 ** tries++);
    timer = setTimeout(connect, pause * (0.75 + Math.random() / 2));
  }

  // wait gives the connection its time. A proxy that keeps back what it is sent
  // looks like a connection on which nothing happens.
  function wait() {
    clearTimeout(timer);
    if (how !== 'open') timer = setTimeout(lost, patience);
  }

  function heard(message) {
    cursor = message.lastEventId || cursor;
    wait();
  }

  function synced(message) {
    heard(message);
    clearTimeout(timer);
    tries = closed = 0;
    if (skipped) gap();
    skipped = false;
    stand('open');
    sync();
  }

  function told(message) {
    heard(message);
    event(JSON.parse(message.data));
  }

  function missed(message) {
    heard(message);
    gap();
  }

  function connect() {
    stop();
    const at = new URL(address, location.href);
    if (closed && performance.now() - closed > memory || !resume) {
      skipped ||= Boolean(cursor);
      cursor = '';
    }
    if (cursor) at.searchParams.set('cursor', cursor);
    source = new EventSource(at);
    source.addEventListener('error', lost);
    source.addEventListener('sync', synced);
    source.addEventListener('gap', missed);
    for (const kind of kinds) source.addEventListener(kind, told);
    wait();
  }

  return {
    open() {
      tries = 0;
      stand('connecting');
      connect();
    },
    close() {
      if (how === 'off') return;
      stop();
      closed ||= performance.now();
      stand('off');
    },
  };
}

// The script of the pages that follow the service. They are whole without it; see
// the package's doc.go.

import './ask.js';
import { tick, write } from './countdown.js';
import { note, noteGap } from './log.js';
import { refresher } from './refresh.js';
import { follow } from './stream.js';

const alone = 5000; // ms between refreshes while the stream is not there
const beside = 10000; // ms while it is: renewals are no events

const byId = (id) => document.getElementById(id);
const live = byId('live');
const pause = byId('pause');
const trouble = byId('trouble');

let how = 'off'; // the stream
let synced = Infinity; // since when it is
let fresh = -Infinity; // when the page that is shown was asked for
let problem = ''; // of the last refresh

const paused = () => pause.getAttribute('aria-pressed') === 'true';

const page = refresher({
  period() {
    if (paused() || document.hidden) return Infinity;
    return how === 'open' && !problem ? beside : alone;
  },
  done(why, began) {
    problem = why;
    if (!why) fresh = began;
    report();
    settle();
  },
});

const stream = live.dataset.stream && follow({
  address: live.dataset.stream,
  kinds: live.dataset.kinds.split(' '),
  resume: Boolean(byId('events')),
  event(event) {
    note(event);
    page.soon();
  },
  gap() {
    noteGap();
    page.soon();
  },
  sync() {
    synced = performance.now();
    page.soon();
  },
  stands(now) {
    how = now;
    if (how !== 'open') synced = Infinity;
    report();
    page.rest();
  },
});

// standing returns how the page stands to the service: the word that styles it and
// the words for the reader.
function standing() {
  if (!stream) return ['', ''];
  if (paused()) return ['paused', 'paused'];
  if (problem || how === 'lost') return ['lost', how === 'lost' ? 'not connected' : 'not refreshed'];
  return fresh >= synced ? ['live', 'live'] : ['connecting', 'connecting…'];
}

// asOf returns the time of day that the page is true of, empty if it has none.
function asOf() {
  return byId('as-of').querySelector('time')?.textContent.slice(11) ?? '';
}

// report says how the page stands. The instant is not read out whenever it
// changes: only what it belongs to is.
const since = document.createElement('span');
since.ariaLive = 'off';
function report() {
  const [word, words] = standing();
  const old = ['lost', 'paused'].includes(word) ? asOf() : '';
  write(since, old && `; what you see is as of ${old}`);
  if (live.firstChild?.nodeValue !== words) live.replaceChildren(words, since);
  live.dataset.state = word;
  write(trouble.firstElementChild, problem && `Not refreshed. ${problem}`);
  trouble.hidden = !problem;
  byId('list').classList.toggle('stale', Boolean(problem));
}

// settle puts into what the server sent what only the browser knows.
function settle() {
  for (const element of document.querySelectorAll('[data-origin]')) write(element, location.origin);
  tick(page.soon);
}

// turn follows the service, or not. A page that nobody sees takes no connection:
// browsers have few of them for one server.
function turn() {
  if (paused() || document.hidden) stream?.close();
  else stream?.open();
  page.rest();
  report();
}

pause.hidden = !stream;
pause.addEventListener('click', () => {
  pause.setAttribute('aria-pressed', String(!paused()));
  turn();
});

byId('refresh').addEventListener('click', (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  page.now();
});

document.addEventListener('visibilitychange', () => {
  turn();
  page.soon();
});
addEventListener('pagehide', () => stream?.close());
addEventListener('online', turn);

// A page that the browser had put away counts from too long ago.
addEventListener('pageshow', (event) => {
  if (!event.persisted) return;
  page.now();
  turn();
});

// A notice is for once, not for each reload.
const here = new URL(location.href);
if (here.searchParams.has('revoked')) {
  for (const name of ['revoked', 'token', 'slot']) here.searchParams.delete(name);
  history.replaceState(null, '', here);
}

settle();
setInterval(() => tick(page.soon), 250);
turn();

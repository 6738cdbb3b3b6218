// The script of the pages with live updates. They work without it; see the package's doc.go.

import './ask.js';
import { tick, write } from './countdown.js';
import { readTable } from './hold.js';
import './keys.js';
import { refresher } from './refresh.js';
import { showSelected } from './select.js';
import { follow } from './stream.js';
import { offerZones, showZone } from './zone.js';

const pollWithoutStream = 5000; // ms between refreshes while the stream is down
const pollWithStream = 4000; // ms while it is up: a renewal is no event, and an outage makes a stream silent
const patience = 2000; // ms from when an answer is due until the page says that none has come

const byId = (id) => document.getElementById(id);
const live = byId('live');
const pause = byId('pause');
const trouble = byId('trouble');

let streamState = 'off';
let synced = Infinity; // when the stream was last in sync
let fresh = -Infinity; // when the shown page was requested
let watched = 0; // when the page began to refresh itself, or went on
let changed = 0; // when the state of the stream last changed, or it came in sync
let problem = ''; // of the last refresh
let held = ''; // how many newer rows wait since then until nobody reads the table; '': none
const still = 'still' in live.parentElement.dataset; // the page will never show anything else

const paused = () => pause.getAttribute('aria-pressed') === 'true';

function period() {
  if (still || paused() || document.hidden) return Infinity;
  return streamState === 'open' && !problem ? pollWithStream : pollWithoutStream;
}

// late reports whether the answer to a refresh is overdue. Until it fails, nothing else tells of it.
const late = () => !problem && performance.now() - Math.max(fresh, watched) > period() + patience;

const page = refresher({
  period,
  done(why, began, newer) {
    problem = why;
    held = newer;
    if (!why) fresh = began;
    report();
    settle();
  },
});

const stream = still || !live.dataset.stream ? undefined : follow({
  address: live.dataset.stream,
  kinds: live.dataset.kinds.split(' '),
  holder: live.dataset.holder,
  news() {
    page.soon();
  },
  sync() {
    synced = changed = performance.now();
    page.soon();
  },
  changed(state) {
    streamState = state;
    changed = performance.now();
    if (state !== 'open') synced = Infinity;
    report();
    page.rest();
  },
});

// liveState returns the state of live updates: the style and the text.
function liveState() {
  if (still) return ['', ''];
  if (paused()) return ['paused', 'paused'];
  if (late()) return ['lost', 'no answer'];
  if (held && streamState !== 'lost') return ['paused', held];
  if (!stream) return problem ? ['lost', 'not refreshed'] : ['polled', 'every 5 s'];
  if (problem || streamState === 'lost') return ['lost', streamState === 'lost' ? 'not connected' : 'not refreshed'];
  if (fresh >= synced) return ['live', 'live'];
  if (performance.now() - changed < patience) return ['connecting', 'connecting…'];
  return ['lost', streamState === 'open' ? 'no answer' : 'not connected'];
}

// report shows the state of live updates. Screen readers announce it.
function report() {
  const [word, words] = liveState();
  write(live, words);
  live.dataset.state = word;
  const why = problem || (late() ? 'No answer has come yet.' : '');
  write(trouble.firstElementChild, why && `Not refreshed. ${why}`);
  trouble.hidden = !why;
  byId('list').classList.toggle('stale', Boolean(why));
}

// settle adds what only the browser knows.
function settle() {
  for (const element of document.querySelectorAll('[data-origin]')) write(element, new URL('..', location.href).href.slice(0, -1)); // on the list only
  showZone();
  tick(page.soon);
  showSelected();
}

// followIfVisible opens or closes the stream. A hidden page has no connection, because browsers open few of them to a
// server.
function followIfVisible() {
  if (paused() || document.hidden) stream?.close();
  else stream?.open();
  watched = performance.now();
  page.rest();
  report();
}

pause.hidden = still;
pause.addEventListener('click', () => {
  pause.setAttribute('aria-pressed', String(!paused()));
  followIfVisible();
});

byId('refresh').addEventListener('click', (event) => {
  if (held || event.ctrlKey || event.metaKey || event.shiftKey) return; // a reload holds nothing
  event.preventDefault();
  page.now();
});

document.addEventListener('visibilitychange', () => {
  followIfVisible();
  page.soon();
});
addEventListener('pagehide', () => stream?.close());
addEventListener('online', followIfVisible);

// A page from the browser's back/forward cache is out of date.
addEventListener('pageshow', (event) => {
  if (!event.persisted) return;
  page.now();
  followIfVisible();
});

// A reload must not show the notice again.
const here = new URL(location.href);
for (const name of live.parentElement.dataset.notice.split(' ')) here.searchParams.delete(name);
if (here.href !== location.href) history.replaceState(null, '', here);

offerZones();
settle();
setInterval(() => {
  tick(page.soon);
  if (held && !readTable(byId('list'))) page.soon();
  report();
}, 250);
followIfVisible();

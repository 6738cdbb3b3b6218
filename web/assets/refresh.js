// Fetches the page again and shows what has changed.

import { begin } from './countdown.js';
import { holdNewer, steadily } from './hold.js';
import { morph } from './morph.js';

const minInterval = 1000; // ms from one request to the next
const timeout = 10000; // ms

// A Refusal is the service's error message.
class Refusal extends Error {}

async function fetchPage() {
  const answer = await fetch(location.href, { cache: 'no-store', signal: AbortSignal.timeout(timeout) });
  const came = performance.now();
  if (answer.status === 401) location.reload(); // the service redirects to the sign-in page
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  if (!answer.ok || !page.getElementById('list')) {
    const message = page.querySelector('.problem:not([hidden]) p')?.textContent.trim();
    throw new Refusal(message || `The service answered with status ${answer.status}.`);
  }
  return { page, came };
}

// show updates the page, and returns how many newer rows wait. The focus stays, or moves to the element with the same key,
// or else to the list.
function show({ page, came }) {
  const list = document.getElementById('list');
  const held = holdNewer(list, page);
  const focus = list.contains(document.activeElement) ? document.activeElement : null;
  steadily(list, () => {
    for (const old of document.querySelectorAll('[data-fragment]')) {
      const fresh = page.getElementById(old.id);
      if (fresh) morph(old, fresh);
    }
  });
  begin(came);
  if (!focus || focus === document.activeElement) return held;
  const like = focus.dataset.key && list.querySelector(`[data-key="${CSS.escape(focus.dataset.key)}"]`);
  (like || list).focus({ preventScroll: true });
  return held;
}

// refresher returns functions that refresh the page. There is one request at a time, and at least a second between
// them, or more if the service is slow.
//   period()                     the greatest age of a page, in ms; Infinity for no limit
//   done(problem, began, held)   is called after each refresh, with when it began; problem is '' on success; held says
//                                how many newer rows wait, '' if none do
export function refresher({ period, done }) {
  let timer, due = Infinity, running = false, again = false, began = -Infinity, took = 0;

  function by(when) {
    if (when >= due) return;
    clearTimeout(timer);
    due = when;
    timer = setTimeout(run, when - performance.now());
  }

  function never() {
    clearTimeout(timer);
    due = Infinity;
  }

  // rest refreshes after the period.
  function rest() {
    if (period() === Infinity) never();
    else if (!running) by(performance.now() + period());
  }

  async function run() {
    never();
    running = true;
    again = false;
    began = performance.now();
    let problem = '', held = '';
    try {
      held = show(await fetchPage());
    } catch (error) {
      problem = error instanceof Refusal ? error.message : 'The service cannot be reached.';
    }
    took = performance.now() - began;
    running = false;
    done(problem, began, held);
    rest();
    if (again) soon();
  }

  // soon refreshes as soon as possible, with a request that begins after the call.
  function soon() {
    if (period() === Infinity) return;
    if (running) again = true;
    else by(Math.max(performance.now(), began + Math.max(minInterval, 3 * took)));
  }

  return {
    soon,
    rest,
    now() {
      if (!running) run();
      else again = true;
    },
  };
}

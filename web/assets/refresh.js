// Fetches the page anew and shows what is other in it.

import { begin } from './countdown.js';
import { morph } from './morph.js';

const apart = 500; // ms from one to the next at least
const patience = 10000; // ms to wait for the service

// A Refusal is an answer that is no such page, in the service's own words.
class Refusal extends Error {}

async function fetchPage() {
  const answer = await fetch(location.href, { cache: 'no-store', signal: AbortSignal.timeout(patience) });
  const came = performance.now();
  if (answer.status === 401) location.reload(); // the service leads to where to sign in
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  if (!answer.ok || !page.getElementById('list')) {
    const said = page.querySelector('.problem:not([hidden])')?.textContent.trim();
    throw new Refusal(said || `The service answered with status ${answer.status}.`);
  }
  return { page, came };
}

// show puts what is new into the page. The focus stays where it was, or goes to
// what is like that, or to the list if there is none any more.
function show({ page, came }) {
  const list = document.getElementById('list');
  const focus = list.contains(document.activeElement) ? document.activeElement : null;
  for (const old of document.querySelectorAll('[data-fragment]')) {
    const fresh = page.getElementById(old.id);
    if (fresh) morph(old, fresh);
  }
  begin(came);
  if (!focus || focus === document.activeElement) return;
  const like = focus.dataset.key && list.querySelector(`[data-key="${CSS.escape(focus.dataset.key)}"]`);
  (like || list).focus({ preventScroll: true });
}

// refresher returns what keeps the page fresh. There is one request at a time, and
// time between them: half a second at least, and more if the service is slow.
//   period()      for how long to be content with a page, in ms; Infinity for ever
//   done(problem, began) is called after each, with when it began; the problem is
//                 empty if there was none
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

  // rest refreshes after a period at the latest, or never if there is none.
  function rest() {
    if (period() === Infinity) never();
    else if (!running) by(performance.now() + period());
  }

  async function run() {
    never();
    running = true;
    again = false;
    began = performance.now();
    let problem = '';
    try {
      show(await fetchPage());
    } catch (error) {
      problem = error instanceof Refusal ? error.message : 'The service cannot be reached.';
    }
    took = performance.now() - began;
    running = false;
    done(problem, began);
    rest();
    if (again) soon();
  }

  // soon refreshes as soon as may be, with one that begins from now on.
  function soon() {
    if (period() === Infinity) return;
    if (running) again = true;
    else by(Math.max(performance.now(), began + Math.max(apart, 3 * took)));
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

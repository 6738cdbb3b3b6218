// The list's script. The page is whole without it; see the package's doc.go.

const period = 5000; // ms from one list to the next
const patience = 10000; // ms to wait for the service

const byId = (id) => document.getElementById(id);
const dialog = byId('ask');
const auto = byId('auto');
const trouble = byId('trouble');

// arrived is when the list came, on the browser's monotonic clock. The first byte
// counts: a lease may seem shorter than it is, never longer by the time to load.
let arrived = performance.getEntriesByType('navigation')[0]?.responseStart || 0;

// words returns a length of time in its two greatest units, as the server does.
function words(s) {
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

function write(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

function tick() {
  const passed = performance.now() - arrived;
  for (const element of document.querySelectorAll('[data-left-ms]')) {
    const left = element.dataset.leftMs - passed;
    write(element, left > 0 ? words(Math.ceil(left / 1000)) : 'ended');
    const over = element.parentElement.querySelector('[data-over]');
    if (over && left <= 0) over.hidden = false;
  }
  write(byId('age'), `, ${words(Math.floor(passed / 1000))} ago`);
}

// settle puts into what the server sent what only the browser knows.
function settle() {
  for (const element of document.querySelectorAll('[data-origin]')) write(element, location.origin);
  tick();
}

// A Refusal is an answer that is no list, in the service's own words.
class Refusal extends Error {}

async function fetchPage() {
  const answer = await fetch(location.href, { cache: 'no-store', signal: AbortSignal.timeout(patience) });
  const came = performance.now();
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  if (!answer.ok || !page.getElementById('list')) {
    const said = page.querySelector('.problem:not([hidden])')?.textContent.trim();
    throw new Refusal(said || `The service answered with status ${answer.status}.`);
  }
  return { page, came };
}

// refresh shows a newer list, or says that it could not get one: an old list is
// never passed off as a fresh one. While a lease is being asked about it stays put.
let fetching = false;
async function refresh() {
  if (fetching) return;
  fetching = true;
  try {
    const { page, came } = await fetchPage();
    if (!dialog.open) swap(page, came);
    report('');
  } catch (error) {
    const why = error instanceof Refusal ? error.message : 'The service cannot be reached.';
    report(`Not refreshed. ${why}`);
  } finally {
    fetching = false;
    schedule();
  }
}

function report(problem) {
  write(trouble.firstElementChild, problem);
  trouble.hidden = !problem;
  byId('list').classList.toggle('stale', Boolean(problem));
}

// swap puts the list of page in place of the one there is. What was open stays
// open, and the focus stays where it was.
function swap(page, came) {
  const open = Array.from(document.querySelectorAll('details[open]'), (d) => d.dataset.key);
  const focus = focused();
  for (const id of ['as-of', 'list']) byId(id).replaceChildren(...page.getElementById(id).childNodes);
  for (const d of document.querySelectorAll('details')) d.open = open.includes(d.dataset.key);
  if (focus) (document.querySelector(focus) ?? byId('list')).focus({ preventScroll: true });
  arrived = came;
  settle();
}

// focused returns a selector of what has the focus in the list, null if nothing has.
function focused() {
  const element = document.activeElement;
  if (!byId('list').contains(element)) return null;
  if (element.dataset.key) return `[data-key="${CSS.escape(element.dataset.key)}"]`;
  return `#${CSS.escape(element.id || 'list')}`;
}

let timer;
function schedule() {
  clearTimeout(timer);
  if (auto.checked && !document.hidden && !dialog.open) timer = setTimeout(refresh, period);
}

// ask opens the dialog about the lease that the form names.
function ask(form) {
  const post = dialog.querySelector('form');
  post.reset();
  for (const name of ['name', 'token', 'back']) post.elements[name].value = form.elements[name].value;
  const facts = { name: form.elements.name.value, token: form.elements.token.value, holder: form.dataset.holder };
  for (const element of dialog.querySelectorAll('[data-fill]')) write(element, facts[element.dataset.fill]);
  dialog.showModal();
}

document.addEventListener('submit', (event) => {
  if (!event.target.matches('form[data-revoke]')) return;
  event.preventDefault();
  ask(event.target);
});

dialog.querySelector('[data-close]').addEventListener('click', () => dialog.close());
dialog.addEventListener('close', schedule);

byId('refresh').addEventListener('click', (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  refresh();
});

auto.addEventListener('change', () => {
  const here = new URL(location.href);
  if (auto.checked) here.searchParams.set('refresh', auto.value);
  else here.searchParams.delete('refresh');
  history.replaceState(null, '', here);
  byId('refresh').href = here;
  refresh();
});

document.addEventListener('visibilitychange', () => {
  if (auto.checked && !document.hidden && !dialog.open) refresh();
  else schedule();
});

// A page that the browser had put away counts from too long ago.
addEventListener('pageshow', (event) => {
  if (event.persisted) refresh();
});

// A notice is for once, not for each reload.
const here = new URL(location.href);
if (here.searchParams.has('revoked')) {
  for (const name of ['revoked', 'token']) here.searchParams.delete(name);
  history.replaceState(null, '', here);
}

settle();
setInterval(tick, 250);
schedule();

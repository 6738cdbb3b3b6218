// Lets the time left run down, and what has passed grow, without asking the server.

// arrived is when the page came, on the browser's monotonic clock. The first byte
// counts: a lease may seem shorter than it is, never longer by the time to load.
let arrived = performance.getEntriesByType('navigation')[0]?.responseStart || 0;

// over are the elements that have been told to have run down.
let over = new WeakSet();

// words returns a length of time in its two greatest units, as the server does.
function words(s) {
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

// write makes the text of the element what it is to be, and touches nothing if it is.
export function write(element, text) {
  if (!element || element.textContent === text) return;
  if (element.firstChild?.nodeType === Node.TEXT_NODE && !element.firstChild.nextSibling) element.firstChild.nodeValue = text;
  else element.textContent = text;
}

function down(element, passed, ended) {
  const left = element.dataset.leftMs - passed;
  write(element, left > 0 ? words(Math.ceil(left / 1000)) : element.dataset.end ?? 'ended');
  if (left > 0) return;
  const unless = element.parentElement.querySelector('[data-over]');
  if (unless) unless.hidden = false;
  if (over.has(element)) return;
  over.add(element);
  ended();
}

// tick writes the times as they are now. It calls ended when one has run down: it
// is for the server to say what has become of that, since renewals are no events.
export function tick(ended) {
  const passed = performance.now() - arrived;
  for (const element of document.querySelectorAll('[data-left-ms]')) down(element, passed, ended);
  for (const element of document.querySelectorAll('[data-age-ms]')) {
    write(element, words(Math.floor((Number(element.dataset.ageMs) + passed) / 1000)));
  }
  write(document.getElementById('age'), `, ${words(Math.floor(passed / 1000))} ago`);
}

// begin counts from when a newer page came.
export function begin(came) {
  arrived = came;
  over = new WeakSet();
}

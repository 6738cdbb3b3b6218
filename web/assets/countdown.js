// Counts down the time left, and counts up elapsed time, without requests.

// arrived is when the first byte of the page arrived, on the browser's monotonic clock. So a lease never seems longer
// than it is by the time to load the page.
let arrived = performance.getEntriesByType('navigation')[0]?.responseStart || 0;

// over are the elements whose end was reported.
let over = new WeakSet();

// words returns a duration in its two greatest units, as the server does.
function words(s) {
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

// write sets the text of the element, unless it is the same already.
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

// tick updates the times. It calls ended when one has run down: only the server knows whether the lease was renewed,
// because a renewal is no event.
export function tick(ended) {
  const passed = performance.now() - arrived;
  for (const element of document.querySelectorAll('[data-left-ms]')) down(element, passed, ended);
  for (const element of document.querySelectorAll('[data-age-ms]')) {
    write(element, words(Math.floor((Number(element.dataset.ageMs) + passed) / 1000)));
  }
  write(document.getElementById('age'), `, ${words(Math.floor(passed / 1000))} ago`);
}

// begin counts from the arrival of a newer page.
export function begin(came) {
  arrived = came;
  over = new WeakSet();
}

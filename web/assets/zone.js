// Shows times in UTC or in the browser's time zone. The server writes them in UTC.

const key = 'paddock-zone';
const button = document.getElementById('zone');

// stored and store keep the choice. A browser that forbids storage shows UTC on each new page.
function stored() {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function store(zone) {
  try {
    localStorage.setItem(key, zone);
  } catch {
    // the choice is for this page only
  }
}

let local = stored() === 'local';

const two = (n) => String(n).padStart(2, '0');

// localClock returns the time as the server writes it in UTC.
function localClock(t) {
  const day = [t.getFullYear(), two(t.getMonth() + 1), two(t.getDate())].join('-');
  return `${day} ${[t.getHours(), t.getMinutes(), t.getSeconds()].map(two).join(':')}`;
}

function clock(t) {
  return local ? localClock(t) : t.toISOString().slice(0, 19).replace('T', ' ');
}

function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// showZone shows all times of the page in the chosen zone.
export function showZone() {
  const name = local ? 'local time' : 'UTC';
  for (const time of document.querySelectorAll('time')) {
    const text = clock(new Date(time.dateTime));
    set(time, 'short' in time.dataset ? text.slice(11) : text);
  }
  for (const element of document.querySelectorAll('[data-zone]')) set(element, name);
  for (const cell of document.querySelectorAll('[data-label*=", "]')) {
    cell.dataset.label = cell.dataset.label.replace(/, .*/, `, ${name}`);
  }
}

// offerZones shows the button that changes the zone.
export function offerZones() {
  button.hidden = false;
  button.setAttribute('aria-pressed', String(local));
  button.addEventListener('click', () => {
    local = !local;
    store(local ? 'local' : 'utc');
    button.setAttribute('aria-pressed', String(local));
    showZone();
  });
}

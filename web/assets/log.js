// Writes down what happens while the page is open.

import { write } from './countdown.js';

const most = 20; // events to show

// said returns what the row of an event says, by the name of its cell.
function said(event) {
  return {
    ...event,
    at: event.at.slice(0, 19).replace('T', ' '),
    slot: event.slot ? `slot ${event.slot}` : '',
  };
}

// add shows one more row at the end, and one less at the beginning if there are many.
function add(row) {
  const table = document.getElementById('events');
  const body = table.tBodies[0];
  body.append(row);
  while (body.rows.length > most) body.rows[0].remove();
  table.hidden = false;
  document.getElementById('no-events').hidden = true;
}

function copy(id) {
  return document.importNode(document.getElementById(id).content, true);
}

// note writes the event down. It does nothing on a page without a log.
export function note(event) {
  if (!document.getElementById('events')) return;
  const row = copy('event');
  const cells = said(event);
  for (const element of row.querySelectorAll('[data-fill]')) write(element, String(cells[element.dataset.fill] ?? ''));
  row.querySelector('time').dateTime = event.at;
  add(row);
}

// noteGap says that events are missing.
export function noteGap() {
  if (document.getElementById('events')) add(copy('gap'));
}

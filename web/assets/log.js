// Shows the events since the page was opened.

import { write } from './countdown.js';

const most = 20; // events to show

// explanationOf returns the event's reason, and for a refused token how late it was and who held the lock.
function explanationOf(event) {
  if (event.kind !== 'refused') return event.reason;
  const late = event.late_ms === undefined ? '' : `${event.late_ms / 1000} s `;
  const parts = [`${late}after the end of its lease`, `newest token ${event.newest_token}`];
  if (event.held_by) parts.splice(1, 0, `${event.held_by} holds the lock`);
  if (event.reason) parts.push(event.reason);
  return parts.join('; ');
}

// cellsOf returns the texts of an event's row, by cell name.
function cellsOf(event) {
  return {
    ...event,
    at: event.at.slice(0, 19).replace('T', ' '),
    reason: explanationOf(event),
    slot: event.slot ? `slot ${event.slot}` : '',
  };
}

// add appends a row, and removes the first one if there are too many.
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

// logEvent shows the event, if the page has a log.
export function logEvent(event) {
  if (!document.getElementById('events')) return;
  const row = copy('event');
  const cells = cellsOf(event);
  for (const element of row.querySelectorAll('[data-fill]')) write(element, String(cells[element.dataset.fill] ?? ''));
  row.querySelector('time').dateTime = event.at;
  add(row);
}

// logGap shows that events are missing.
export function logGap() {
  if (document.getElementById('events')) add(copy('gap'));
}

// Keeps a row where it is while the page changes above it: the one under the pointer, or else the first visible one of a
// page that is scrolled. The browser's own scroll anchoring is off, because it knows no pointer.

let pointer; // where it is; undefined: nowhere
addEventListener('pointermove', (event) => (pointer = event.pointerType === 'mouse' ? event : undefined), { passive: true });
document.documentElement.addEventListener('pointerleave', () => (pointer = undefined));

const rows = '[data-key]:is(tbody, tr)';
let shift = 0; // by how much the list is lower than it would be

function setShift(list, by) {
  shift = Math.max(by, 0);
  list.style.paddingTop = shift ? `${shift}px` : '';
}

// underPointer returns the element of the list that the pointer is on, if there is one.
function underPointer(list) {
  const under = pointer && document.elementFromPoint(pointer.clientX, pointer.clientY);
  return list.contains(under) ? under : null;
}

function rowToHold(list) {
  const under = underPointer(list)?.closest(rows);
  return under || scrollY === 0 ? under : [...list.querySelectorAll(rows)].find((row) => row.getBoundingClientRect().bottom > 0);
}

// readTable returns the table with the row to hold, if the table begins with the newest rows.
export const readTable = (list) => rowToHold(list)?.closest('table:is(.timeline, .events)');

// holdNewer has newer rows wait: if the fresh page has some above those of readTable, it gets the table as it is, and
// holdNewer returns how many there are, in words. Otherwise the page would scroll after the row for as long as newer ones
// come.
export function holdNewer(list, page) {
  const table = readTable(list);
  const fresh = table && page.querySelector(`table.${table.classList[0]}`);
  if (!fresh) return '';
  const keys = Array.from(fresh.querySelectorAll(rows), (row) => row.dataset.key);
  const newer = keys.indexOf(table.querySelector(rows).dataset.key);
  if (newer === 0) return '';
  fresh.replaceWith(table.cloneNode(true));
  return newer > 0 ? `${newer} newer` : `${keys.length}+ newer`;
}

// steadily runs change. If the row is still there then, it scrolls, and where that is not enough moves the list, so that the
// row is where it was.
export function steadily(list, change) {
  if (!underPointer(list)) setShift(list, 0);
  const row = rowToHold(list);
  const before = row?.getBoundingClientRect().top;
  change();
  if (!row?.isConnected) return;
  const moved = () => row.getBoundingClientRect().top - before;
  if (shift && moved() > 0) setShift(list, shift - moved());
  scrollBy({ top: moved(), behavior: 'instant' });
  if (moved() < 0) setShift(list, shift - moved());
}

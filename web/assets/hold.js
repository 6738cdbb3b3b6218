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

function rowToHold(list) {
  const under = pointer && document.elementFromPoint(pointer.clientX, pointer.clientY);
  if (under && list.contains(under)) return under.closest(rows);
  setShift(list, 0);
  return scrollY > 0 ? [...list.querySelectorAll(rows)].find((row) => row.getBoundingClientRect().bottom > 0) : null;
}

// steadily runs change. If the row is still there then, it scrolls, and where that is not enough moves the list, so that the
// row is where it was.
export function steadily(list, change) {
  const row = rowToHold(list);
  const before = row?.getBoundingClientRect().top;
  change();
  if (!row?.isConnected) return;
  const moved = () => row.getBoundingClientRect().top - before;
  if (shift && moved() > 0) setShift(list, shift - moved());
  scrollBy({ top: moved(), behavior: 'instant' });
  if (moved() < 0) setShift(list, shift - moved());
}

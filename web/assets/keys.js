// Keys: / goes to the search, the arrow down from there to the table, the arrows up and down move in the first column of the
// table, or in that of its boxes.

const search = document.querySelector('[aria-keyshortcuts="/"]');

// isTyping reports whether the element uses the keys itself.
function isTyping(element) {
  return element.matches('select, textarea, input:not([type=checkbox])') || element.isContentEditable;
}

// column returns the elements among which the arrows move: those like the one that has the focus.
function column(at) {
  if (at.matches('.pick input')) return [...document.querySelectorAll('.pick input')];
  return [...document.querySelectorAll('#list tbody th a')];
}

function move(by) {
  const at = document.activeElement;
  if (at !== search && at !== document.body && at.id !== 'main' && at.id !== 'list' && !at.closest('#list table')) return false;
  const all = column(at);
  const row = at.closest('tbody tr');
  let from = all.indexOf(at);
  if (from < 0 && row) from = all.findLastIndex((e) => e.closest('tr') === row || e.compareDocumentPosition(at) & Node.DOCUMENT_POSITION_FOLLOWING);
  const next = all[from + by] ?? (from < 0 ? all[0] : undefined);
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
  return Boolean(next);
}

document.addEventListener('keydown', (event) => {
  const leaves = event.target === search && event.key === 'ArrowDown'; // of one line, so the key does nothing there
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) && !leaves || document.querySelector('dialog[open]')) return;
  if (event.key === '/' && search) {
    event.preventDefault();
    search.focus();
    search.select();
  }
  if (event.key === 'ArrowDown' && move(1)) event.preventDefault();
  if (event.key === 'ArrowUp' && move(-1)) event.preventDefault();
});

// Confirms a revocation in a dialog instead of on its own page.

import { write } from './countdown.js';

const dialog = document.getElementById('ask'); // on pages with leases
const title = dialog?.querySelector('[data-fill=title]').textContent;

// ask opens the dialog for the leases that the form names.
function ask(form) {
  const post = dialog.querySelector('form');
  post.reset();
  const facts = { title, ...form.dataset };
  for (const name of ['name', 'token', 'back', 'slot', 'since']) {
    facts[name] = post.elements[name].value = form.elements[name]?.value ?? '';
  }
  for (const element of dialog.querySelectorAll('[data-fill]')) {
    const fact = facts[element.dataset.fill] ?? '';
    write(element, fact);
    if (element.matches('dd')) element.parentElement.hidden = !fact; // it has none, or the page does not know it
  }
  dialog.showModal();
}

document.addEventListener('submit', (event) => {
  if (!event.target.matches('form[data-revoke]')) return;
  event.preventDefault();
  ask(event.target);
});

dialog?.querySelector('[data-close]').addEventListener('click', () => dialog.close());

// The browser returns the focus to the button. If the button has disappeared with its lease, focus the list.
dialog?.addEventListener('close', () => {
  const at = document.activeElement;
  if (at === document.body || dialog.contains(at)) document.getElementById('list').focus({ preventScroll: true });
});

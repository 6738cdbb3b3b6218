// Asks before a revoke in a dialog, rather than on a page of its own.

import { write } from './countdown.js';

const dialog = document.getElementById('ask');
const title = dialog.querySelector('[data-fill=title]').textContent;

// ask opens the dialog about the leases that the form names.
function ask(form) {
  const post = dialog.querySelector('form');
  post.reset();
  const facts = { title, ...form.dataset };
  for (const name of ['name', 'token', 'back', 'slot', 'since']) {
    facts[name] = post.elements[name].value = form.elements[name]?.value ?? '';
  }
  for (const element of dialog.querySelectorAll('[data-fill]')) {
    write(element, facts[element.dataset.fill]);
    if (element.dataset.fill === 'slot') element.parentElement.hidden = !facts.slot;
  }
  dialog.showModal();
}

document.addEventListener('submit', (event) => {
  if (!event.target.matches('form[data-revoke]')) return;
  event.preventDefault();
  ask(event.target);
});

dialog.querySelector('[data-close]').addEventListener('click', () => dialog.close());

// The focus goes back to the button. If that has gone with its lease meanwhile, it
// must not be lost.
dialog.addEventListener('close', () => {
  const at = document.activeElement;
  if (at === document.body || dialog.contains(at)) document.getElementById('list').focus({ preventScroll: true });
});

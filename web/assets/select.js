// Shows how many leases are selected to be revoked together. Without it, the form is always there.

import { write } from './countdown.js';

const form = document.getElementById('several'); // on pages with leases that may be revoked

const all = document.getElementById('select-all'); // in the form; it selects every lease of the page

// showSelected shows the form if leases are selected, also after a refresh, in which they may have disappeared.
export function showSelected() {
  if (!form) return;
  const n = document.querySelectorAll('.pick input:checked').length;
  form.hidden = n === 0;
  all.hidden = n === document.querySelectorAll('.pick input').length;
  write(document.getElementById('selected'), n === 1 ? '1 lease selected' : `${n} leases selected`);
}

document.addEventListener('change', (event) => {
  if (event.target.matches('.pick input')) showSelected();
});

all?.addEventListener('click', () => {
  for (const box of document.querySelectorAll('.pick input')) box.checked = true;
  showSelected();
  if (all.hidden) form.querySelector('.danger').focus(); // the button that had the focus has gone
});

form?.querySelector('[type=reset]').removeAttribute('hidden');
form?.addEventListener('reset', () => setTimeout(showSelected)); // the boxes are cleared after the event

// Shows how many leases are selected to be revoked together. Without it, the form is always there.

import { write } from './countdown.js';

const form = document.getElementById('several'); // on pages with leases that may be revoked

// showSelected shows the form if leases are selected, also after a refresh, in which they may have disappeared.
export function showSelected() {
  if (!form) return;
  const n = document.querySelectorAll('.pick input:checked').length;
  form.hidden = n === 0;
  write(document.getElementById('selected'), n === 1 ? '1 lease selected' : `${n} leases selected`);
}

document.addEventListener('change', (event) => {
  if (event.target.matches('.pick input')) showSelected();
});

form?.querySelector('[type=reset]').removeAttribute('hidden');
form?.addEventListener('reset', () => setTimeout(showSelected)); // the boxes are cleared after the event

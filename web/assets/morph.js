// Updates the page to a newer version and leaves equal elements alone, so that focus, selection and open details stay.

// keyOf returns the key that identifies an element among its siblings, or ''.
function keyOf(node) {
  return node.dataset?.key ?? '';
}

function alike(a, b) {
  return a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
}

// attributes copies the attributes of fresh to old, but keeps what the user has opened.
function attributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== 'open') old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

function update(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  attributes(old, fresh);
  morph(old, fresh);
}

// keyed returns the children with a key, by their key. It removes those that fresh no longer has.
function keyed(old, fresh) {
  const wanted = new Set(Array.from(fresh.childNodes, keyOf));
  const found = new Map();
  for (const child of [...old.childNodes]) {
    const key = keyOf(child);
    if (!key) continue;
    if (wanted.has(key)) found.set(key, child);
    else child.remove();
  }
  return found;
}

// morph updates the children of old to those of fresh. Children are matched by key, or by position if they have none.
export function morph(old, fresh) {
  const found = keyed(old, fresh);
  let at = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const same = keyOf(next) ? found.get(keyOf(next)) : at;
    if (!same || !alike(same, next)) {
      old.insertBefore(document.importNode(next, true), at);
      continue;
    }
    while (at && at !== same && !keyOf(at)) at = drop(at);
    if (at === same) at = at.nextSibling;
    else old.insertBefore(same, at);
    update(same, next);
  }
  while (at) at = drop(at);
}

// drop removes the node and returns the one after it.
function drop(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

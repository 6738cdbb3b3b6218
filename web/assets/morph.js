// Makes what is shown like what the server sent, and leaves alone all that is alike
// already: the focus, what is selected and what was opened stay.

// keyOf returns what tells an element from its siblings, empty if nothing does.
function keyOf(node) {
  return node.dataset?.key ?? '';
}

function alike(a, b) {
  return a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
}

// attributes makes those of old what those of fresh are. What a reader has opened
// is the reader's.
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

// keyed returns the children that have a key, by their key. Those that fresh does
// not have any more are removed.
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

// morph makes the children of old what those of fresh are. A child with a key is
// found again wherever it is; others by their place.
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

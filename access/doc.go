// Package access says who may do what: API keys with roles and name prefixes.
//
// It knows neither HTTP nor a database. A [Key] is found by its secret in a file that
// holds hashes only; what it may do is asked at one door, the [lock.Service] that
// [Guard] returns, through which every call must go whatever route it came by.
//
// # Keys
//
// A secret looks like pk_k3f9a2xy_dGhpcyBp…, with 256 random bits behind the id. Only its
// SHA-256 is kept, which is enough for a secret that nobody can guess: a slow hash is for
// what people make up. Secrets are compared in constant time. The id is no secret: it
// stands in lists, logs and refusals.
//
// The file is JSON for people to read and to edit, see [ReadFile] for its form. A [Keyring] holds
// what is in it and reads it again when it has changed, within about a second, also when a
// symbolic link on the way to it was swapped, as Kubernetes does. A file that became malformed
// changes nothing: the keys stay as they were, and the log says what is wrong.
//
// # Roles and prefixes
//
//	read    look: a lock, a queue, lists, events, watches, VerifyToken, ReadFenced
//	lock    read, and hold locks: Acquire, Renew, Release, WriteFenced
//	admin   lock, and Revoke
//
// A key with prefixes covers the names under them and nothing else: billing covers the
// lock billing and all that begin with billing:, and not billing2. A list, events and a
// watch need a name, or a prefix that the key covers whole: billing: is one, billing is not,
// for billing2 begins with it too. A fenced write needs the key's cover for the resource and
// for the lock.
//
// A batch is its items: each is checked, and counts, as the call of its own does.
//
// # In a server
//
//	key, err := keyring.Find(secret)        // ErrKeyInvalid, ErrKeyExpired
//	ctx = access.With(ctx, key)
//	locks := access.Guard(store, limits)    // once; it refuses a ctx without a key
//
// Each call is checked as of when it is made. A key that is revoked, or edited, while a call
// waits under it ends the call with ErrKeyInvalid, and one that expires with ErrKeyExpired: so a
// stream that goes on page by page, each a call under the context that it began with,
// ends within a second or two of the revocation with nothing more to do. Pages after the
// first are asked for under [Continued], so that they do not count as calls.
//
// What is remembered for longer than a request, as in a page's cookie, is the secret, which
// is looked for at each request.
//
// Bad secrets are counted by [Attempts]. Find first, and ask Attempts only when Find has
// refused: a good key does not suffer from what others behind the same address do.
//
//	key, err := keyring.Find(secret)
//	if err != nil {
//		if limited := attempts.Failed(ip); limited != nil {
//			err = limited // ErrRateLimited
//		}
//		return err
//	}
//
// # Not given
//
// Keys are not shared between replicas: give each the same file. Rates and waiters are
// counted by each replica for itself. Whoever may write the file may do anything.
package access

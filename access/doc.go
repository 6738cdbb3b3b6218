// Package access authenticates and authorizes callers: API keys with roles and name prefixes.
//
// It depends neither on HTTP nor on a database. A [Keyring] finds a [Key] by its secret in a file of hashes. [Guard]
// wraps a [lock.Service] and checks the key of every call, whatever transport the call used.
//
// # Keys
//
// A secret looks like pk_k3f9a2xy_dGhpcyBp…, with 256 random bits after the id. Only its SHA-256 is stored. That is
// enough for a random secret; slow hashes are for passwords that people choose. Secrets are compared in constant time.
// The id is not secret: it appears in lists, logs and errors.
//
// The file is JSON that people may read and edit; see [ReadFile] for its form. A [Keyring] reloads it within about a
// second of a change, also when a symbolic link in its path is replaced, as Kubernetes does. If the new file is
// malformed, the Keyring keeps its keys and logs the error.
//
// # Roles and prefixes
//
//	read    reads: locks, queues, lists, events, watches, VerifyToken, ReadFenced
//	lock    read, plus holding locks: Acquire, Renew, Release, WriteFenced
//	admin   lock, plus Revoke
//
// A key with prefixes covers the names under them: billing covers the lock billing and all names that begin with
// billing:, but not billing2. Lists, events and watches need a name, or a prefix that the key covers entirely.
// billing: is such a prefix; billing is not, because billing2 begins with it, too. A fenced write needs a key that
// covers both the resource and the lock.
//
// Each item of a batch is checked and counted like a single call.
//
// # In a server
//
//	key, err := keyring.Find(secret)        // ErrKeyInvalid, ErrKeyExpired
//	ctx = access.WithKey(ctx, key)
//	locks := access.Guard(store, limits)    // once; it refuses a ctx without a key
//
// A call is checked when it starts. If its key is revoked, changed or expires while the call waits, the call ends with
// ErrKeyInvalid or ErrKeyExpired. So a stream, which is a sequence of calls under one context, ends within a second or
// two of the revocation. Calls for later pages use [Continued], so that they do not count towards the rate.
//
// Whatever outlives a request, such as a cookie, stores the secret, which every request looks up again.
//
// [Attempts] limits invalid secrets per address. Call Find first, and Attempts only if Find has refused, so that a
// valid key is never affected by other clients behind the same address:
//
//	key, err := keyring.Find(secret)
//	if err != nil {
//		if limited := attempts.Failed(ip); limited != nil {
//			err = limited // ErrRateLimited
//		}
//		return err
//	}
//
// # Not guaranteed
//
// Replicas do not share keys: give each the same file. Each replica counts rates and waiters separately. A process
// that can write the file may do everything.
package access

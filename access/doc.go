// Package access authenticates and authorizes callers: API keys with roles and name prefixes.
//
// It depends neither on HTTP nor on a database. A [Keyring] finds a [Key] by its secret, in a file of hashes. [Guard]
// wraps a [paddock.Service] and checks the key of every call.
//
// # Keys
//
// A secret looks like pk_k3f9a2xy_dGhpcyBp…, with 256 random bits after the id. Only its SHA-256 is stored. A random
// secret needs no slow hash, unlike a password. Secrets are compared in constant time.
// The id is not secret: it appears in lists, logs and errors.
//
// The file is JSON that operators may edit; see [ReadFile] for its form. A [Keyring] reloads it within about a second
// of a change. It follows symbolic links, which Kubernetes replaces. If the new file is malformed, the Keyring keeps
// its keys and logs the error.
//
// # Roles and prefixes
//
//	read    reads: locks, queues, sessions, lists, events, watches, VerifyToken, ReadFenced
//	lock    read, plus holding locks: Acquire, Renew, Release, OpenSession, RenewSession, CloseSession, WriteFenced
//	admin   lock, plus Revoke and RevokeSession, trees, freezes and rules
//
// A key with prefixes covers the names under them: billing covers the lock billing and all names that begin with
// billing:, but not billing2. The list of locks needs a prefix parameter that the key covers entirely; events need
// such a prefix or one name. billing: is such a prefix. billing is not, because billing2 begins with it, too. A fenced
// write needs a key that covers both the resource and the lock, and an acquire of several locks one that covers all of
// them. Reads show no name of a set that the key does not cover. A session has no name, so keys with prefixes may open
// and read one; they see no name of a lock that they do not cover. The list of sessions, and RevokeSession, need a key
// that covers all names. A freeze or a rule needs a key that covers all names of its scope; a key reads those of scopes
// of which it covers a name.
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
// ErrKeyInvalid or ErrKeyExpired. A stream is a sequence of calls with one key, some of them made for all streams of
// that key and query, so it ends within a second or two of the revocation. Its calls for later pages use [Continued],
// so that they do not count towards the rate.
//
// Do not store a Key beyond a request. Store the secret, for example in a cookie, and look it up for every request.
//
// [Attempts] limits invalid secrets per address. Call Find first, and CountFailure only if Find fails, so that a valid
// key is never affected by other clients behind the same address:
//
//	key, err := keyring.Find(secret)
//	if err != nil {
//		if limited := attempts.CountFailure(ip); limited != nil {
//			err = limited // ErrRateLimited
//		}
//		return err
//	}
//
// # Not guaranteed
//
// Replicas do not share keys: give each replica the same file. Each replica counts rates and waiters separately. A
// process that can write the file can add keys.
package access

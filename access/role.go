package access

// A Role is what a key is good for. Each includes those before it; the zero Role is
// none and allows nothing.
type Role int

// The roles.
const (
	// Read may look.
	Read Role = 1 + iota
	// Lock may hold locks, and write under their tokens.
	Lock
	// Admin may take leases away from others.
	Admin
)

var roleNames = [...]string{Read: "read", Lock: "lock", Admin: "admin"}

// String returns the role's name, "none" for what is none.
func (r Role) String() string {
	if r < Read || int(r) >= len(roleNames) {
		return "none"
	}
	return roleNames[r]
}

// RoleOf returns the Role whose name is text, zero if there is none.
func RoleOf(text string) Role {
	for r := Read; int(r) < len(roleNames); r++ {
		if roleNames[r] == text {
			return r
		}
	}
	return 0
}

// Package pooler tests Paddock behind PgBouncer: package poolmode detects transaction mode, paddock serve refuses it
// without its flag, and a store notices a pooler that comes later. It contains only tests.
package pooler

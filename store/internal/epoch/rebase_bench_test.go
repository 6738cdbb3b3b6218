package epoch

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

// BenchmarkBegin starts epochs in a database with a million leases, a tenth of which have a grace. Half of the locks
// have an exclusive lease, the others a shared one. The server has the usual settings, and writes to disk.
func BenchmarkBegin(b *testing.B) {
	_, url := pgtest.Server(b)
	conn, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	const leases = 1_000_000
	for _, fill := range []string{
		`insert into paddock.records (name, mode, token, lease_id, holder, acquired_at, expires_at, ttl_ms, rest)
			select 'exclusive:' || i, 1, i, gen_random_uuid(), 'host-' || i, clock_timestamp(), clock_timestamp() + interval '1 minute', 60000,
			       case when i % 10 = 0 then '{"grace":5000}'::json end
			from generate_series(1, $1::integer / 2) i`,
		`insert into paddock.records (name, parts) select 'shared:' || i, 1 from generate_series(1, $1::integer / 2) i`,
		`insert into paddock.parts (name, slot, place, mode, token, lease_id, holder, attachment, acquired_at, expires_at, ttl_ms, rest)
			select 'shared:' || i, 1, 0, 2, i, gen_random_uuid(), 'host-' || i, 0, clock_timestamp(), clock_timestamp() + interval '1 minute', 60000,
			       case when i % 10 = 0 then '{"grace":5000}'::json end
			from generate_series(1, $1::integer / 2) i`,
	} {
		if _, err := conn.Exec(b.Context(), fill, leases); err != nil {
			b.Fatal(err)
		}
	}
	for _, sql := range []string{"vacuum analyze", "checkpoint"} {
		if _, err := conn.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	if err := conn.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := Begin(b.Context(), url, "", "benchmark", 0); err != nil {
			b.Fatal(err)
		}
	}
}

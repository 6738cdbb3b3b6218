package wire

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
)

func TestServiceInfoCrossesTheWire(t *testing.T) {
	t.Parallel()
	at, lag, bytes := sessionOpened, 20*time.Millisecond, int64(0)
	want := paddock.ServiceInfo{
		Settings: []paddock.Setting{{Name: "listen", Value: ":8443", Source: "file", Place: "p.toml:3"}, {Name: "cell", Source: "default"}},
		Databases: []paddock.DatabaseInfo{{
			Cell: "main", Problem: "It is away.", AsOf: at, Age: 5 * time.Second,
			Epoch: paddock.EpochInfo{
				Number: 3, BeganAt: at.Add(-time.Hour), Reason: "failed over", Timeline: "00000002", Quorum: true,
				GrantsPausedUntil: at.Add(time.Minute),
			},
			Earlier: []paddock.EarlierEpoch{{Number: 2, BeganAt: at.Add(-24 * time.Hour), Reason: "restored"}},
			Replicas: []paddock.ReplicaInfo{{
				ID: "0000000000000007", Self: true, Host: "h", Version: "1.2.3", StartedAt: at, BeatAt: at, Alive: true,
				Connections: 1, Waiters: 2, Streams: 3,
			}},
			Server: paddock.ServerInfo{Version: "17.5", Standby: true, Address: "10.0.0.5:5432", StartedAt: at, SynchronousStandbys: "ANY 1 (a)"},
			Standbys: []paddock.StandbyInfo{
				{Name: "a", Address: "10.0.0.6", State: "streaming", Sync: "quorum", LagBytes: &bytes, Lag: &lag}, {Name: "b"},
			},
			Tables:      []paddock.TableInfo{{Name: "records", Bytes: 8192}},
			OldestEvent: at.Add(-24 * time.Hour), EventRetention: 7 * 24 * time.Hour, Hidden: []string{"Something."},
		}, {
			Problem: "It was never read.", Earlier: []paddock.EarlierEpoch{}, Replicas: []paddock.ReplicaInfo{}, Standbys: []paddock.StandbyInfo{}, Tables: []paddock.TableInfo{}, Hidden: []string{},
		}},
	}
	text, err := Encode(ServiceInfoOf(want))
	if err != nil {
		t.Fatal(err)
	}
	var model api.ServiceInfo
	if err := json.Unmarshal(text, &model); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, ToServiceInfo(model)); diff != "" {
		t.Error(diff)
	}
	if got := model.Databases[0].Epoch.GrantsPausedMs; got != 55_000 {
		t.Errorf("grants are paused for %d ms; want what is left five seconds later", got)
	}
	if never := model.Databases[1]; never.Epoch != nil || never.Server != nil || never.AsOf != nil || never.OldestEventAt != nil {
		t.Errorf("what was never read is %s", text)
	}
}

package wire

import (
	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
)

// ServiceInfoOf returns the model of how the service is.
func ServiceInfoOf(s paddock.ServiceInfo) api.ServiceInfo {
	return api.ServiceInfo{Settings: MapSlice(s.Settings, settingOf), Databases: MapSlice(s.Databases, databaseInfoOf)}
}

// ToServiceInfo returns how the service is.
func ToServiceInfo(s api.ServiceInfo) paddock.ServiceInfo {
	return paddock.ServiceInfo{Settings: MapSlice(s.Settings, toSetting), Databases: MapSlice(s.Databases, toDatabaseInfo)}
}

func settingOf(s paddock.Setting) api.Setting {
	return api.Setting{Name: s.Name, Value: UnlessZero(s.Value), Source: api.SettingSource(s.Source), Place: UnlessZero(s.Place)}
}

func toSetting(s api.Setting) paddock.Setting {
	return paddock.Setting{Name: s.Name, Value: ValueOf(s.Value), Source: string(s.Source), Place: ValueOf(s.Place)}
}

func databaseInfoOf(d paddock.DatabaseInfo) api.DatabaseInfo {
	m := api.DatabaseInfo{
		Cell: UnlessZero(d.Cell), Problem: UnlessZero(d.Problem), AsOf: instantOf(d.AsOf), AgeMs: nonNegativeMs(d.Age),
		EarlierEpochs: MapSlice(d.Earlier, earlierEpochOf), Replicas: MapSlice(d.Replicas, replicaInfoOf), Standbys: MapSlice(d.Standbys, standbyInfoOf), Tables: MapSlice(d.Tables, tableInfoOf),
		OldestEventAt: instantOf(d.OldestEvent), EventRetentionMs: nonNegativeMs(d.EventRetention), Hidden: append([]string{}, d.Hidden...),
	}
	if e := d.Epoch; e.Number != 0 {
		m.Epoch = &api.EpochInfo{
			Number: e.Number, BeganAt: e.BeganAt.UTC(), Reason: e.Reason, Timeline: e.Timeline, Quorum: e.Quorum,
			GrantsPausedUntil: instantOf(e.GrantsPausedUntil), GrantsPausedMs: nonNegativeMs(d.GrantsPaused()),
		}
	}
	if s := d.Server; s.Version != "" {
		m.Server = &api.ServerInfo{
			Version: s.Version, Standby: s.Standby, Address: UnlessZero(s.Address), StartedAt: s.StartedAt.UTC(),
			SynchronousStandbys: s.SynchronousStandbys,
		}
	}
	return m
}

func toDatabaseInfo(m api.DatabaseInfo) paddock.DatabaseInfo {
	d := paddock.DatabaseInfo{
		Cell: ValueOf(m.Cell), Problem: ValueOf(m.Problem), AsOf: ValueOf(m.AsOf), Age: nonNegative(m.AgeMs),
		Earlier: MapSlice(m.EarlierEpochs, toEarlierEpoch), Replicas: MapSlice(m.Replicas, toReplicaInfo), Standbys: MapSlice(m.Standbys, toStandbyInfo), Tables: MapSlice(m.Tables, toTableInfo),
		OldestEvent: ValueOf(m.OldestEventAt), EventRetention: nonNegative(m.EventRetentionMs), Hidden: m.Hidden,
	}
	if e := m.Epoch; e != nil {
		d.Epoch = paddock.EpochInfo{
			Number: e.Number, BeganAt: e.BeganAt, Reason: e.Reason, Timeline: e.Timeline, Quorum: e.Quorum,
			GrantsPausedUntil: ValueOf(e.GrantsPausedUntil),
		}
	}
	if s := m.Server; s != nil {
		d.Server = paddock.ServerInfo{
			Version: s.Version, Standby: s.Standby, Address: ValueOf(s.Address), StartedAt: s.StartedAt, SynchronousStandbys: s.SynchronousStandbys,
		}
	}
	return d
}

func earlierEpochOf(e paddock.EarlierEpoch) api.EarlierEpoch {
	return api.EarlierEpoch{Number: e.Number, BeganAt: e.BeganAt.UTC(), Reason: e.Reason}
}

func toEarlierEpoch(m api.EarlierEpoch) paddock.EarlierEpoch {
	return paddock.EarlierEpoch{Number: m.Number, BeganAt: m.BeganAt, Reason: m.Reason}
}

func replicaInfoOf(r paddock.ReplicaInfo) api.ReplicaInfo {
	return api.ReplicaInfo{
		ID: r.ID, Self: r.Self, Host: UnlessZero(r.Host), Version: r.Version, StartedAt: r.StartedAt.UTC(), BeatAt: r.BeatAt.UTC(),
		Alive: r.Alive, Connections: r.Connections, Waiters: r.Waiters, Streams: r.Streams,
	}
}

func toReplicaInfo(m api.ReplicaInfo) paddock.ReplicaInfo {
	return paddock.ReplicaInfo{
		ID: m.ID, Self: m.Self, Host: ValueOf(m.Host), Version: m.Version, StartedAt: m.StartedAt, BeatAt: m.BeatAt,
		Alive: m.Alive, Connections: m.Connections, Waiters: m.Waiters, Streams: m.Streams,
	}
}

func standbyInfoOf(s paddock.StandbyInfo) api.StandbyInfo {
	return api.StandbyInfo{
		Name: s.Name, Address: s.Address, State: s.State, Sync: s.Sync, LagBytes: s.LagBytes, LagMs: optionalOf(s.Lag, nonNegativeMs),
	}
}

func toStandbyInfo(m api.StandbyInfo) paddock.StandbyInfo {
	return paddock.StandbyInfo{
		Name: m.Name, Address: m.Address, State: m.State, Sync: m.Sync, LagBytes: m.LagBytes,
		Lag: optionalOf(m.LagMs, nonNegative),
	}
}

func tableInfoOf(t paddock.TableInfo) api.TableInfo {
	return api.TableInfo{Name: t.Name, Bytes: t.Bytes}
}

func toTableInfo(m api.TableInfo) paddock.TableInfo {
	return paddock.TableInfo{Name: m.Name, Bytes: m.Bytes}
}

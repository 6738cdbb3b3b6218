// Package metrics checks the alerts in deploy/prometheus and the dashboard in deploy/grafana, with a real Prometheus
// that scrapes real replicas. It contains only tests.
package metrics

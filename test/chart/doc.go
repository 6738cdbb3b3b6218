// Package chart checks the Helm chart in deploy/helm, the manifests in deploy/kubernetes and the examples: Helm lints and
// renders them, and kubeconform compares them with the schemas of Kubernetes in testdata/schemas, from which schemas are
// made by go run ./schemas. No cluster is needed. It contains only tests. Those of generated files write them with -update:
// make chart.
package chart

{{- define "paddock.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains "paddock" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-paddock" (.Release.Name | trunc 42 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "paddock.selector" -}}
app.kubernetes.io/name: paddock
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: service
{{- end -}}

{{- define "paddock.labels" -}}
app.kubernetes.io/name: paddock
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "paddock.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "paddock.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- include "paddock.name" . -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "paddock.scheme" -}}
{{- if .Values.tls.existingSecret }}https{{ else }}http{{ end -}}
{{- end -}}

{{- define "paddock.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "paddock.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* The variables that name the database. */}}
{{- define "paddock.databaseEnv" -}}
- name: PADDOCK_DATABASE_URL_FILE
  value: /etc/paddock/database/url
- name: PADDOCK_SCHEMA
  value: {{ .Values.database.schema | quote }}
{{- with .Values.database.sslMode }}
- name: PGSSLMODE
  value: {{ . }}
{{- end }}
{{- if .Values.database.ca.existingSecret }}
- name: PGSSLROOTCERT
  value: /etc/paddock/database-ca/ca.crt
{{- end }}
{{- end -}}

{{- define "paddock.databaseMounts" -}}
- name: database
  mountPath: /etc/paddock/database
  readOnly: true
{{- if .Values.database.ca.existingSecret }}
- name: database-ca
  mountPath: /etc/paddock/database-ca
  readOnly: true
{{- end }}
{{- end -}}

{{/* A Secret as a volume that the group of Paddock may read. Takes name, secret, key and file. */}}
{{- define "paddock.secretVolume" -}}
- name: {{ .name }}
  secret:
    secretName: {{ .secret | quote }}
    defaultMode: 0440
    items:
      - key: {{ .key | quote }}
        path: {{ .file }}
{{- end -}}

{{/* The volumes of the database's URL and authorities. Takes root, secret and key. */}}
{{- define "paddock.databaseVolumes" -}}
{{- include "paddock.secretVolume" (dict "name" "database" "secret" .secret "key" .key "file" "url") -}}
{{- with .root.Values.database.ca }}
{{- if .existingSecret }}
{{ include "paddock.secretVolume" (dict "name" "database-ca" "secret" .existingSecret "key" .key "file" "ca.crt") }}
{{- end }}
{{- end }}
{{- end -}}

{{/* What cannot be served is refused here, and not by pods that do not start. */}}
{{- define "paddock.check" -}}
{{- if not .Values.database.existingSecret -}}
{{- fail "set database.existingSecret to a Secret with the URL of the database" -}}
{{- end -}}
{{- if and (not .Values.auth.existingSecret) (not .Values.auth.disabled) -}}
{{- fail "set auth.existingSecret to a Secret with the file of API keys, or auth.disabled to serve everyone" -}}
{{- end -}}
{{- if and .Values.auth.existingSecret .Values.auth.disabled -}}
{{- fail "auth.existingSecret and auth.disabled contradict each other; leave out one" -}}
{{- end -}}
{{- if and (not .Values.tls.existingSecret) (not .Values.tls.disabled) -}}
{{- fail "set tls.existingSecret to a Secret with the certificate to serve, or tls.disabled to serve plain HTTP" -}}
{{- end -}}
{{- if and .Values.tls.existingSecret .Values.tls.disabled -}}
{{- fail "tls.existingSecret and tls.disabled contradict each other; leave out one" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.enabled) -}}
{{- fail "metrics.serviceMonitor needs metrics.enabled; enable that, or disable the ServiceMonitor" -}}
{{- end -}}
{{- if and .Values.migration.existingSecret (ne .Values.migration.by "job") -}}
{{- fail "migration.existingSecret is for the Job; set migration.by to job, or leave out the Secret" -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" (include "paddock.name" .)) -}}
{{- fail (printf "no Service can have the name %s, which is made of the release's name: set fullnameOverride" (include "paddock.name" .)) -}}
{{- end -}}
{{- if regexMatch "^(public|pg_.*|information_schema)$" .Values.database.schema -}}
{{- fail (printf "database.schema: %s is not only Paddock's; choose another, such as paddock" .Values.database.schema) -}}
{{- end -}}
{{- if eq (int .Values.metrics.port) 8080 -}}
{{- fail "metrics.port: 8080 is the port of the service; choose another" -}}
{{- end -}}
{{- range .Values.extraArgs -}}
{{- if regexMatch "^--(listen|metrics-listen|drain-delay|migrate|no-auth|plain-http|database-url|schema|pooler-mode|auth-file|tls-cert|tls-key)(=|$)" . -}}
{{- fail (printf "extraArgs: %s is a setting of the chart; use its values" .) -}}
{{- end -}}
{{- end -}}
{{- range $label, $_ := .Values.podLabels -}}
{{- if regexMatch "^(app[.]kubernetes[.]io/(name|instance|component|version|managed-by)|helm[.]sh/chart)$" $label -}}
{{- fail (printf "podLabels: the chart sets %s; choose another label" $label) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "set ingress.host to the host name of the Ingress" -}}
{{- end -}}
{{- end -}}

{{/* Parts that several templates share. */}}

{{- define "whippet.name" -}}
{{- if contains "whippet" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-whippet" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* labels (list $ "front-door"): what selects the pods of a service */}}
{{- define "whippet.selector" -}}
{{- $ := index . 0 -}}
app.kubernetes.io/name: whippet
app.kubernetes.io/instance: {{ $.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "whippet.labels" -}}
{{- $ := index . 0 -}}
{{ include "whippet.selector" . }}
app.kubernetes.io/version: {{ $.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $.Chart.Name $.Chart.Version }}
{{- end }}

{{- define "whippet.image" -}}
{{- $ := index . 0 -}}
{{ $.Values.image.registry }}/{{ index . 1 }}:{{ $.Values.image.tag | default $.Chart.AppVersion }}
{{- end }}

{{- define "whippet.secret" -}}
{{ .Values.credentials.existingSecret | default (printf "%s-credentials" (include "whippet.name" .)) }}
{{- end }}

{{/* The roster of the metadata replicas: id=host:port of the replica plane. */}}
{{- define "whippet.roster" -}}
{{- $name := include "whippet.name" . -}}
{{- $all := list -}}
{{- range $i := until (int .Values.metadataReplica.replicas) -}}
{{- $all = append $all (printf "%d=%s-metadata-replica-%d.%s-metadata-replica:9090" $i $name $i $name) -}}
{{- end -}}
{{ join "," $all }}
{{- end }}

{{- define "whippet.natsSecret" -}}
{{- if .Values.nats.enabled }}{{ include "whippet.name" . }}-nats{{ else }}{{ .Values.nats.existingSecret }}{{ end }}
{{- end }}

{{/* env (list $ "metadata"): what every process is told; the second is its user at NATS. */}}
{{- define "whippet.env" -}}
{{- $ := index . 0 -}}
- {name: WHIPPET_DATA, value: /data}
- {name: WHIPPET_CLUSTER_NAME, value: {{ $.Values.cluster.name | quote }}}
- {name: WHIPPET_CLUSTER_SECRET_FILE, value: /run/secrets/whippet/cluster-secret}
- {name: WHIPPET_METADATA, value: {{ include "whippet.roster" $ | quote }}}
- {name: IGGY_CLUSTER_TLS_ENABLED, value: {{ $.Values.cluster.tls | quote }}}
- {name: IGGY_CLUSTER_TLS_SELF_SIGNED, value: {{ $.Values.cluster.tls | quote }}}
- {name: WHIPPET_LOG_LEVEL, value: {{ $.Values.log.level }}}
- {name: WHIPPET_LOG_FORMAT, value: {{ $.Values.log.format }}}
- {name: WHIPPET_TELEMETRY_PER_TOPIC, value: {{ $.Values.perTopicMetrics | quote }}}
{{- if or $.Values.nats.enabled $.Values.nats.url }}
- {name: WHIPPET_NATS_URL, value: {{ $.Values.nats.enabled | ternary (printf "nats://%s-nats:4222" (include "whippet.name" $)) $.Values.nats.url | quote }}}
{{- if include "whippet.natsSecret" $ }}
- {name: WHIPPET_NATS_USER, value: {{ index . 1 }}}
- {name: WHIPPET_NATS_PASSWORD_FILE, value: /run/secrets/nats/{{ index . 1 }}}
{{- end }}
{{- end }}
{{- end }}

{{/* How a replica is reached by others: by the name of its pod in the headless service. */}}
{{- define "whippet.replicaEnv" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- {name: WHIPPET_ADVERTISE, value: "$(POD_NAME).{{ . }}:9090"}
- {name: WHIPPET_REPLICA_ADDRESS, value: "0.0.0.0:9090"}
- {name: WHIPPET_SERVICE_ADDRESS, value: "0.0.0.0:9091"}
{{- end }}

{{- define "whippet.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "whippet.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "whippet.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: ops}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: ops}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: ops}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{/* secrets (list $ "metadata" (list keys)): the files of the secrets of a process */}}
{{- define "whippet.secretVolumes" -}}
{{- $ := index . 0 -}}
- name: credentials
  secret:
    secretName: {{ include "whippet.secret" $ }}
    defaultMode: 0440
    items:
    {{- range index . 2 }}
      - {key: {{ . }}, path: {{ . }}}
    {{- end }}
{{- if include "whippet.natsSecret" $ }}
- name: nats
  secret:
    secretName: {{ include "whippet.natsSecret" $ }}
    defaultMode: 0440
    items: [{key: {{ index . 1 }}, path: {{ index . 1 }}}]
{{- end }}
{{- end }}

{{- define "whippet.secretMounts" -}}
- {name: credentials, mountPath: /run/secrets/whippet, readOnly: true}
{{- if include "whippet.natsSecret" . }}
- {name: nats, mountPath: /run/secrets/nats, readOnly: true}
{{- end }}
{{- end }}

{{/* spread (list $ "partition-replica"): no two pods of a service on one machine, or in one zone, while there are others */}}
{{- define "whippet.spread" -}}
{{- $args := . -}}
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "whippet.selector" $args | nindent 8 }}
{{- end }}
{{- end }}

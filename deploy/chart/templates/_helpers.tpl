{{- define "wal2lake.name" -}}
{{- $name := ternary .Release.Name (printf "%s-wal2lake" .Release.Name) (contains "wal2lake" .Release.Name) -}}
{{- $name | trunc 44 | trimSuffix "-" -}}
{{- end -}}

{{/* What a pod is found by; takes the root and the component. */}}
{{- define "wal2lake.selector" -}}
app.kubernetes.io/name: wal2lake
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "wal2lake.labels" -}}
{{ include "wal2lake.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "wal2lake.image" -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}

{{- define "wal2lake.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* Whether the lake is a directory, and so a volume; else it is an object store. */}}
{{- define "wal2lake.lakeIsVolume" -}}
{{- if not (contains "://" .Values.config.lake.path) }}yes{{ end -}}
{{- end -}}

{{/* The port of a URL or of host:port; takes the address and the port that it has without one. */}}
{{- define "wal2lake.port" -}}
{{- $host := regexReplaceAll "^[a-z]+://([^@/]*@)?([^/?]+).*$" .address "${2}" -}}
{{- $given := regexFind ":[0-9]+$" $host -}}
{{- $given | trimPrefix ":" | default (ternary "443" .default (hasPrefix "https:" .address)) -}}
{{- end -}}

{{/* A rule of a policy; takes the peers and the ports. */}}
{{- define "wal2lake.egress" -}}
- ports:
  {{- range .ports | uniq }}
    - {port: {{ . | int }}, protocol: TCP}
  {{- end }}
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* The rules that job and worker share: names, source, Kafka and registry. */}}
{{- define "wal2lake.sharedEgress" -}}
{{- $policy := .Values.networkPolicy -}}
{{- $config := .Values.config -}}
{{- $brokers := list -}}
{{- range splitList "," $config.kafka.bootstrap_servers -}}
  {{- $brokers = append $brokers (include "wal2lake.port" (dict "address" (trim .) "default" "9092")) -}}
{{- end -}}
{{- $source := include "wal2lake.port" (dict "address" $config.source.url "default" "5432") -}}
{{- $registry := include "wal2lake.port" (dict "address" $config.registry.url "default" "80") -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
{{ include "wal2lake.egress" (dict "ports" (list $source) "to" $policy.source.to) }}
{{ include "wal2lake.egress" (dict "ports" $brokers "to" $policy.kafka.to) }}
{{ include "wal2lake.egress" (dict "ports" (list $registry) "to" $policy.registry.to) }}
{{- with $policy.extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* wal2lake.yaml as the job reads it: the values, and what the chart decides. */}}
{{- define "wal2lake.config" -}}
{{- include "wal2lake.checkFiles" . -}}
{{- $config := deepCopy .Values.config -}}
{{- $connect := $config.connect | default dict -}}
{{- if .Values.worker.enabled -}}
  {{- if or $connect.url $connect.source_password -}}
    {{- fail "config.connect: url and source_password are the chart's while worker.enabled is true; leave them out, or set worker.enabled to false" -}}
  {{- end -}}
  {{- $url := printf "http://%s-connect:8083" (include "wal2lake.name" .) -}}
  {{- $connect = merge (dict "url" $url "source_password" "${env:POSTGRES_PASSWORD}") $connect -}}
{{- else if not $connect.url -}}
  {{- fail "config.connect.url: missing; name your worker, or set worker.enabled to true" -}}
{{- else if not $connect.source_password -}}
  {{- fail "config.connect.source_password: missing; name the password by one of your worker's config providers, or it would be in the connector's configuration" -}}
{{- end -}}
{{- $listen := printf "0.0.0.0:%d" (int .Values.monitor.port) -}}
{{- $_ := set $config "connect" $connect -}}
{{- $_ := set $config "monitor" (dict "listen" $listen) -}}
{{- /* Its owner is the job, which makes it private; of the volume itself only the group is the job's. */ -}}
{{- $_ := set $config "state_dir" "/state/wal2lake" -}}
{{- toYaml $config -}}
{{- end -}}

{{/* Refuse a file that no secret brings. Of connect's keys some name files of the worker. */}}
{{- define "wal2lake.checkFiles" -}}
{{- $secrets := .Values.secrets -}}
{{- range $section, $keys := .Values.config -}}
  {{- if kindIs "map" $keys -}}
    {{- range $key, $path := $keys -}}
      {{- if and $path (hasSuffix "_file" $key) (not (hasPrefix "registry_" $key)) -}}
        {{- $name := regexReplaceAll "^/run/secrets/([^/]+)/[^/]+$" $path "${1}" -}}
        {{- if not (has $name $secrets) -}}
          {{- fail (printf "config.%s.%s: %s is no file /run/secrets/NAME/KEY of one of the secrets (%s)" $section $key $path (join ", " $secrets)) -}}
        {{- end -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* A claim of the stateful set; takes the root, the name and its values. */}}
{{- define "wal2lake.claim" -}}
- metadata:
    name: {{ .name }}
    labels:
      {{- include "wal2lake.selector" (dict "root" .root "component" "job") | nindent 6 }}
  spec:
    accessModes: [{{ .claim.accessMode }}]
    {{- with .claim.storageClassName }}
    storageClassName: {{ . }}
    {{- end }}
    resources: {requests: {storage: {{ .claim.size }}}}
{{- end -}}

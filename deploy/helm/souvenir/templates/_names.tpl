{{- define "souvenir.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains "souvenir" $name) }}{{ $name = printf "%s-souvenir" $name }}{{ end -}}
{{- $name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "souvenir.selector" -}}
app.kubernetes.io/name: souvenir
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "souvenir.labels" -}}
{{ include "souvenir.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "souvenir.secret" -}}
{{- .Values.existingSecret | default (include "souvenir.name" .) -}}
{{- end -}}

{{- define "souvenir.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

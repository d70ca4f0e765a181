{{- define "trainhub.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "trainhub.secret" -}}
{{ if .Values.secrets.existing }}{{ .Values.secrets.existing }}{{ else }}{{ .Release.Name }}-settings{{ end }}
{{- end }}

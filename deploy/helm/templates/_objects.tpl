{{- /* kustomization prints the objects of a directory's kustomization. Its argument is a list of the root context and the directory. */}}
{{- define "kustomization" }}
{{- $root := first . }}{{ $dir := last . }}
{{- range (printf "%s/kustomization.yaml" $dir | $root.Files.Get | fromYaml).resources }}
{{- $path := printf "%s/%s" $dir . | clean }}
{{- if eq (ext $path) ".yaml" }}
{{- range regexSplit "(?m)^---$" ($root.Files.Get $path) -1 }}
{{- with fromYaml . }}{{ include "object" (list $root .) }}{{ end }}
{{- end }}
{{- else }}
{{- include "kustomization" (list $root $path) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* object prints an object with what the values change of it. Its argument is a list of the root context and the object. */}}
{{- define "object" }}
{{- $root := first . }}{{ $object := last . }}{{ $values := $root.Values }}
{{- if has $object.kind (list "CustomResourceDefinition" "Namespace") }}
{{- /* NodePlugins and their revisions stay when the release goes, and so do the plugins of nodes. */}}
{{- $_ := set $object.metadata "annotations" (set ($object.metadata.annotations | default dict) "helm.sh/resource-policy" "keep") }}
{{- else if has $object.kind (list "DaemonSet" "Deployment") }}
{{- include "pod" (list $values $object.spec.template.spec) }}
{{- end }}
{{- if eq $object.kind "DaemonSet" }}
{{- include "agent" (list $values $object.spec.template.spec) }}
{{- end }}
{{- if eq $object.metadata.name "wasmproxy-root-plugins" }}
{{- range $object.spec.variables }}
{{- if eq .name "group" }}{{ $_ := set . "expression" (squote $values.rootGroup) }}{{ end }}
{{- end }}
{{- end }}
{{- /* The namespace of the release is there already. */}}
{{- if ne (printf "%s %s" $object.kind $object.metadata.name) (printf "Namespace %s" $root.Release.Namespace) }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}

{{- /* pod gives a pod the image. */}}
{{- define "pod" }}
{{- $values := first . }}{{ $pod := last . }}
{{- with $values.image }}
{{- range $pod.containers }}{{ $_ := set . "image" $values.image }}{{ end }}
{{- end }}
{{- with $values.imagePullSecrets }}
{{- $names := list }}
{{- range . }}{{ $names = append $names (dict "name" .) }}{{ end }}
{{- $_ := set $pod "imagePullSecrets" $names }}
{{- end }}
{{- end }}

{{- /* agent gives the agents' pod its arguments, and the credentials for registries. */}}
{{- define "agent" }}
{{- $values := first . }}{{ $pod := last . }}{{ $container := first $pod.containers }}
{{- with $values.registrySecret }}
{{- $_ := set $pod "volumes" (append $pod.volumes (dict "name" "registry" "secret" (dict "secretName" .))) }}
{{- $_ := set $container "volumeMounts" (append $container.volumeMounts (dict "name" "registry" "mountPath" "/registry" "readOnly" true)) }}
{{- $_ := set $container "args" (concat $container.args (list "--registry-config" "/registry/.dockerconfigjson")) }}
{{- end }}
{{- $_ := set $container "args" (concat $container.args $values.agentArgs) }}
{{- end }}

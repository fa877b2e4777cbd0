package abi

// Manifest is what a plugin says of itself when it is loaded. Its JSON form is
// in the custom section ManifestSection or is returned by wp_manifest.
type Manifest struct {
	Name         string   `json:"name"`
	Version      string   `json:"version"`
	Description  string   `json:"description,omitempty"`
	License      string   `json:"license,omitempty"`
	SDK          string   `json:"sdk,omitempty"` // "go 0.1.0"; for people, not for decisions
	Hooks        []string `json:"hooks"`         // names; a plugin gets only these
	Capabilities []string `json:"capabilities,omitempty"`
}

package v1alpha1

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// RevisionName returns the name of the revision of a NodePlugin, which has the digest of the revision's content.
func RevisionName(plugin string, spec RevisionSpec) (string, error) {
	text, err := canonical(spec)
	if err != nil {
		return "", fmt.Errorf("naming the revision of %s: %w", plugin, err)
	}
	return fmt.Sprintf("%s-%.6x", plugin, sha256.Sum256(text)), nil
}

// canonical is one text for all spellings of the same JSON: the API server and its clients write keys in different orders.
func canonical(spec RevisionSpec) ([]byte, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	var whole any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&whole); err != nil {
		return nil, err
	}
	return json.Marshal(whole)
}

package agent

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// stateFile says which revisions the agent has delivered, by plugin. If it is lost, the next delivery finds that nothing is to be
// changed, and it is written again.
const stateFile = "delivered.json"

// delivered is what the agent has put into the plugin directory.
type delivered struct {
	Revision string    `json:"revision"`
	Settings string    `json:"settings"` // SHA-256 in hex of the plugin's JSON file
	Disabled bool      `json:"disabled,omitempty"`
	Shadow   string    `json:"shadow,omitempty"` // digest of the module of its shadow; empty if it has none
	Time     time.Time `json:"time"`
}

func readState(dir string) (map[string]delivered, error) {
	state := map[string]delivered{}
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading which revisions the node has: %s: %w", filepath.Join(dir, stateFile), err)
	}
	return state, nil
}

func saveState(dir string, state map[string]delivered) error {
	text, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return err
	}
	return regular.Replace(filepath.Join(dir, stateFile), append(text, '\n'), 0o644)
}

func sha256Hex(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

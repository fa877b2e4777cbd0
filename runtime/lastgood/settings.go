package lastgood

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

const maxSettings = 8 << 20 // bytes: a settings file of 1 MiB, each of whose bytes may be escaped

// copyOf is the name of the copy of a settings file. Proxies with other settings files may have the same data-dir.
func copyOf(file string) string {
	return fmt.Sprintf("settings-%.8x.json", sha256.Sum256([]byte(file)))
}

// Settings are those with which the proxy has served.
type Settings struct {
	File  string    `json:"file"`  // that they are from, an absolute path
	Text  []byte    `json:"text"`  // its content then
	Since time.Time `json:"since"` // when the proxy first served with them
}

// KeepSettings makes these the last good settings.
func (s *Store) KeepSettings(good Settings) error {
	text, err := json.Marshal(struct {
		Version int `json:"version"`
		Settings
	}{formatVersion, good})
	if err != nil {
		return err
	}
	return regular.Replace(filepath.Join(s.dir, copyOf(good.File)), text, 0o600)
}

// ReadSettings returns the last good settings of a file from the directory of a Store, in which it changes nothing. It
// is an error if the directory or the copy can be changed by others, and an fs.ErrNotExist if there is no copy.
func ReadSettings(dir, file string) (good Settings, err error) {
	path := filepath.Join(dir, baseDir, copyOf(file))
	defer func() {
		if err != nil {
			err = fmt.Errorf("last good settings %s: %w", path, err)
		}
	}()
	if dir == "" {
		return good, errors.New("data-dir is empty")
	}
	if err := registry.CheckTrust(dir); err != nil {
		return good, err
	}
	info, err := os.Lstat(filepath.Dir(path))
	if err == nil {
		err = own(info)
	}
	if err != nil {
		return good, regular.Cause(err)
	}
	if err := regular.ReadState(path, maxSettings, formatVersion, &good); err != nil {
		return Settings{}, err
	}
	if good.File != file {
		return Settings{}, fmt.Errorf("it is of the settings file %.256q", good.File)
	}
	return good, nil
}

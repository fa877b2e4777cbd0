package host

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// failureFile says which program's installation was taken back, and why, until the next boot. Without it, a pod that installs
// would restart kubelet for ever: each restart ends the back-off of the pod.
const failureFile = "/run/wasmproxy-host.failed"

// checkRestart requires that a restart of kubelet is not in vain.
func (p *installation) checkRestart() error {
	if p.host.KubeletUnit() == "" {
		return errors.New("there is no unit that starts kubelet, so it cannot be restarted: leave --restart-kubelet out, and restart kubelet yourself")
	}
	note, err := p.host.Root.read(failureFile)
	if err != nil || note == nil {
		return err
	}
	digest, err := programDigest(p.host.Program)
	if err != nil {
		return err
	}
	before, failed, _ := strings.Cut(string(note), "\n")
	if before != digest {
		return nil
	}
	return fmt.Errorf("an installation by this program was taken back since the last boot, because kubelet did not use the proxy; nothing was changed. Correct the cause, remove %s, and run the command again. It was: %s", failureFile, strings.TrimSpace(failed))
}

// programDigest is the SHA-256 in hex of the program that is installed.
func programDigest(path string) (string, error) {
	program, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the program: %w", err)
	}
	return sum(program), nil
}

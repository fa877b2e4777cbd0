package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/trust"
	"github.com/wasmproxy/wasmproxy/fleet/trust/verify"
)

// TestCosign has cosign itself make keys and sign, in its present layout and in its old one.
func TestCosign(t *testing.T) {
	dir := t.TempDir()
	testcluster.Run(t, "go", "-C", "../../testdata/e2e", "run", "./internal/programs", dir, "cosign")
	cosign := func(args ...string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(dir, "cosign"), args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "COSIGN_PASSWORD=", "HOME="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cosign %q: %v\n%s", args, err, out)
		}
	}
	cosign("generate-key-pair")
	for _, api := range []bool{true, false} {
		host := startRegistry(t, api)
		c := oci.Client{PlainHTTP: []string{host}}
		write(t, filepath.Join(dir, "trust.yaml"), []byte("repositories:\n- {name: "+host+"/plugins/*, key: cosign.pub}\n"))
		policy, _, err := trust.NewFile(filepath.Join(dir, "trust.yaml")).Policy()
		if err != nil {
			t.Fatal(err)
		}
		push := func(name string) string {
			t.Helper()
			reference, err := c.Push(t.Context(), host+"/plugins/"+name, []byte("module of "+name))
			if err != nil {
				t.Fatal(err)
			}
			return reference
		}
		v, err := verify.New(policy)
		if err != nil {
			t.Fatal(err)
		}
		good, old := push("good"), push("old")
		sign := []string{"sign", "--yes", "--key", "cosign.key", "--use-signing-config=false", "--tlog-upload=false"}
		cosign(append(sign, good)...)
		if _, signer, err := v.Find(t.Context(), c, good); err != nil || signer != "the key cosign.pub" {
			t.Errorf("with the referrers' API %v: signed by %q (%v)", api, signer, err)
		}
		cosign(append(sign, "--new-bundle-format=false", old)...)
		if _, _, err := v.Find(t.Context(), c, old); err == nil || !strings.Contains(err.Error(), "cosign's old layout") {
			t.Errorf("with the referrers' API %v: the old layout: %v", api, err)
		}
	}
}

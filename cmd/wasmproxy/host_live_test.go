package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"
)

// playKubelet is what of kubelet a node needs here: it asks the runtime that its configuration names, ends if that does
// not answer, and serves /healthz from then on. The endpoints that /var/lib/kubelet/broken is a part of do not answer.
func playKubelet() {
	text, err := os.ReadFile("/var/lib/kubelet/config.yaml")
	if err != nil {
		panic(err)
	}
	of := func(key string) string { return string(regexp.MustCompile(key + ": (.*)").FindSubmatch(text)[1]) }
	if broken, err := os.ReadFile("/var/lib/kubelet/broken"); err == nil && strings.Contains(of("containerRuntimeEndpoint"), strings.TrimSpace(string(broken))) {
		fmt.Println("no runtime")
		os.Exit(1)
	}
	conn, err := grpc.NewClient(of("containerRuntimeEndpoint"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := runtimeapi.NewRuntimeServiceClient(conn).Version(ctx, &runtimeapi.VersionRequest{}, grpc.WaitForReady(true)); err != nil {
		panic(err)
	}
	panic(http.ListenAndServe("127.0.0.1:"+of("healthzPort"), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
}

// fakeSystemd starts and ends processes as the units of a node would: systemd itself needs a machine, which
// make e2e-packages has.
const fakeSystemd = `#!/bin/sh
alive() { [ -s "$1" ] && grep -qs '^State:[[:space:]]*[^ZX[:space:]]' /proc/$(cat $1)/status; }
end() { ! alive $1 || kill $(cat $1); while alive $1; do sleep 0.05; done; }
case "$*" in
"restart kubelet")
	end $DIR/kubelet.pid
	kubelet >>$DIR/kubelet.log 2>&1 </dev/null &
	echo $! >$DIR/kubelet.pid ;;
"enable --now wasmproxy.service")
	alive $DIR/proxy.pid && exit
	/usr/local/bin/wasmproxy serve --config /etc/wasmproxy/wasmproxy.yaml >>$DIR/proxy.log 2>&1 </dev/null &
	echo $! >$DIR/proxy.pid ;;
"disable --now "*) end $DIR/proxy.pid ;;
"show --property=MainPID wasmproxy.service") echo "MainPID=$(cat $DIR/proxy.pid)" ;;
show*" kubelet.service")
	if alive $DIR/kubelet.pid; then
		printf 'MainPID=%s\nActiveState=active\nSubState=running\nResult=success\nExecMainStatus=0\nNRestarts=0\n' $(cat $DIR/kubelet.pid)
	else
		printf 'MainPID=0\nActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainStatus=1\nNRestarts=3\n'
	fi ;;
esac
`

// fakeNode makes a host of namespaces: process 1 is the shell that runs the story.
const fakeNode = `set -e
mount -t tmpfs none /run
cp -a /etc /run/etc
mkdir -p /run/lib/kubelet /run/bin /run/wasmproxy /run/systemd/system
mount --bind /run/etc /etc
mount --bind /run/lib /var/lib
mount --bind /run/bin /usr/local/bin
mount -t tmpfs none /var/log
mkdir -p /etc/wasmproxy /etc/systemd/system
cp $DIR/config.yaml /var/lib/kubelet/
cp $DIR/wasmproxy.yaml /etc/wasmproxy/
cp $DIR/kubelet.service /etc/systemd/system/
systemctl restart kubelet
set +e
host() { "$PROGRAM" host "$@" --yes 2>&1; echo "exit code $?"; }
state() {
	echo "kubelet has $(grep -o '[a-z]*.sock' /var/lib/kubelet/config.yaml), and is $(systemctl show kubelet.service | grep -o 'active\|failed' | head -1)"
	echo "units: $(cd /etc/systemd/system && ls -d wasmproxy.* 2>/dev/null | tr '\n' ' ')"
}
`

// TestHostOnANode: the real program, with a real proxy, a kubelet and a runtime.
func TestHostOnANode(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("root is needed to make namespaces")
		}
		t.Skip("root is needed to make namespaces")
	}
	const units = "units: wasmproxy.service wasmproxy.socket"
	for name, c := range map[string]struct {
		story string
		want  []string // in this order
	}{
		"kubelet connects, and serves without the proxy again": {
			"host install --restart-kubelet; state; \"$PROGRAM\" status; host install --restart-kubelet; host uninstall --restart-kubelet; state",
			[]string{
				"if it does not connect to the proxy", "wasmproxy is installed", "exit code 0", "kubelet has wasmproxy.sock, and is active", "units: wasmproxy.service", "peers ", "kubelet (PID ",
				"kubelet uses the proxy already, so it is not restarted", "exit code 0", "wasmproxy is uninstalled", "exit code 0", "kubelet has runtime.sock, and is active", "units: \n",
			},
		},
		"kubelet does not start through the proxy": {
			"echo wasmproxy >/var/lib/kubelet/broken; host install --restart-kubelet; state; rm /var/lib/kubelet/broken; " +
				"host install --restart-kubelet; state; rm /run/wasmproxy-host.failed; host install --restart-kubelet; state",
			[]string{
				"kubelet does not use the proxy, so everything is taken back", "kubelet.service is failed (failed), result exit-code, exit status 1, restarted by systemd 3 times",
				"Everything was taken back", "/run/wasmproxy-host.failed keeps this program from trying again", "exit code 1", "kubelet has runtime.sock, and is active", "units: \n",
				"nothing was changed. Correct the cause, remove /run/wasmproxy-host.failed", "exit code 1", "kubelet has runtime.sock, and is active", "units: \n",
				"wasmproxy is installed", "exit code 0", "kubelet has wasmproxy.sock, and is active",
			},
		},
		"the proxy has no socket on which it can be asked": {
			`printf 'admin-socket: ""\nstatus-socket: ""\n' >>/etc/wasmproxy/wasmproxy.yaml; host install --restart-kubelet; state; host uninstall --restart-kubelet; state`,
			[]string{
				"kubelet serves; the proxy cannot be asked whether kubelet is connected", "wasmproxy is installed", "exit code 0", "kubelet has wasmproxy.sock, and is active",
				"wasmproxy is uninstalled", "exit code 0", "kubelet has runtime.sock, and is active", "units: \n",
			},
		},
		"the settings have another bypass-file than the proxy that runs": {
			"host install --restart-kubelet; echo 'bypass-file: /etc/wasmproxy/other' >>/etc/wasmproxy/wasmproxy.yaml; host uninstall --restart-kubelet; ls -m /etc/wasmproxy",
			[]string{"wasmproxy is installed", "exit code 0", "wasmproxy is uninstalled", "exit code 0\nwasmproxy.yaml\n"},
		},
		"nobody reads what it says any more": {
			`echo wasmproxy >/var/lib/kubelet/broken; "$PROGRAM" host install --yes --restart-kubelet | head -1; state`,
			[]string{"kubelet has runtime.sock, and is active", "units: \n"},
		},
		"systemd does not run": {
			"rmdir /run/systemd/system; host install --restart-kubelet; state",
			[]string{"systemd does not run here", "exit code 1", "kubelet has runtime.sock, and is active", "units: \n"},
		},
		"the new state is kept": {
			"echo wasmproxy >/var/lib/kubelet/broken; host install --restart-kubelet --no-rollback; state",
			[]string{"does not use the proxy at unix:///run/wasmproxy/wasmproxy.sock", "exit code 1", "kubelet has wasmproxy.sock, and is failed", units},
		},
		"kubelet does not serve without the proxy either": {
			"host install --restart-kubelet; echo sock >/var/lib/kubelet/broken; host uninstall --restart-kubelet; state; rm /var/lib/kubelet/broken; host uninstall --restart-kubelet; state",
			[]string{
				"exit code 0", "kubelet was restarted with its former endpoint, and it does not answer on http://127.0.0.1:", "wasmproxy is not uninstalled", "exit code 1",
				"kubelet has runtime.sock, and is failed", "wasmproxy is uninstalled", "exit code 0", "kubelet has runtime.sock, and is active", "units: \n",
			},
		},
		"neither way works": {
			"echo sock >/var/lib/kubelet/broken; systemctl restart kubelet; host install --restart-kubelet; state",
			[]string{"Taking everything back failed, too", "exit code 1", "kubelet has runtime.sock, and is failed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := playNode(t, c.story)
			rest := out
			for _, want := range c.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("%q does not come in its place in\n%s", want, out)
				}
				rest = after
			}
		})
	}
}

// playNode runs a story on a node, and returns what it prints.
func playNode(t *testing.T, story string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "wp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	runtime := fake.NewFakeRemoteRuntime()
	if err := runtime.Start("unix://" + dir + "/runtime.sock"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runtime.Stop)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	program, err := exec.LookPath("wasmproxy") // which testscript has put on PATH, with kubelet beside it
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"bin/systemctl":   fakeSystemd,
		"config.yaml":     "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncontainerRuntimeEndpoint: unix://" + dir + "/runtime.sock\nhealthzPort: " + port + "\n",
		"wasmproxy.yaml":  "backend: unix://" + dir + "/runtime.sock\ncgroup-root: \"\"\ncache-dir: \"\"\nstate-dir: \"\"\ndata-dir: \"\"\nhook-dir: \"\"\n",
		"kubelet.service": "[Service]\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", fakeNode+story)
	cmd.Env = append(os.Environ(), "DIR="+dir, "PROGRAM="+program, "PATH="+dir+"/bin:"+os.Getenv("PATH"))
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

package guest

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Machine is a running guest.
type Machine struct {
	shell
	console  string // file with what the guest prints on its serial port
	registry string // address of the images, on this machine
	redial   func() // connects again after a reboot
}

// Boot starts a guest and waits until it answers. What it writes to its disk is gone
// when the test ends, and so is the guest. The guest sees a copy of the files in the
// directory payload as /mnt. Its memory is in MiB. It ends when it reboots, unless options of QEMU
// say otherwise.
func Boot(t testing.TB, image Image, payload string, memory int, options ...string) *Machine {
	t.Helper()
	dir := t.TempDir()
	m := &Machine{console: filepath.Join(dir, "console")}
	disk := payloadDisk(t, dir, payload)
	address := freeAddress(t)
	cmd := exec.Command("qemu-system-x86_64", append([]string{
		"-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", strconv.Itoa(memory),
		"-nodefaults", "-nographic", "-no-reboot", "-serial", "file:" + m.console,
		"-kernel", image.file("kernel"), "-initrd", image.file("initrd"), "-append", strings.Join(kernelParameters, " "),
		"-drive", drive(image.file("disk")), "-drive", drive(disk),
		// Nothing of the guest's reaches the network; the host reaches the guest's ssh.
		"-netdev", "user,id=net,restrict=on,hostfwd=tcp:" + address + "-:22", "-device", "virtio-net-pci,netdev=net,romfile=",
	}, options...)...)
	ended := start(t, cmd)
	t.Cleanup(func() { m.showConsole(t) })
	m.redial = func() {
		m.shell = dialShell(t, image, address, ended)
		m.Run(t, "mount --mkdir /dev/vdb /mnt")
	}
	m.redial()
	t.Cleanup(func() { m.showJournal(t) })
	return m
}

var kernelParameters = []string{
	"console=ttyS0", "TERM=dumb", "panic=-1", // QEMU ends with a panic
	"cgroup_no_v1=all", "psi=1", "systemd.default_timeout_start_sec=600",
	"apparmor=0", "systemd.getty_auto=no", // nobody needs them
}

// drive is a disk of the guest. What the guest writes goes to a file without a name.
func drive(file string) string {
	return "if=virtio,format=raw,snapshot=on,cache=unsafe,file=" + file
}

// payloadDisk makes a file system of a directory.
func payloadDisk(t testing.TB, dir, payload string) (file string) {
	t.Helper()
	size := int64(64 << 20) // of the file system's own
	err := filepath.WalkDir(payload, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size() * 11 / 10
		}
		return err
	})
	if err != nil {
		t.Fatalf("making a disk of %s: %v", payload, err)
	}
	file = filepath.Join(dir, "payload")
	if out, err := exec.Command("mkfs.ext4", "-q", "-O", "^has_journal", "-d", payload, file, fmt.Sprintf("%dM", size>>20)).CombinedOutput(); err != nil {
		t.Fatalf("making a disk of %s: %v\n%s", payload, err, out)
	}
	return file
}

// freeAddress returns an address of this machine that nobody listens at.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// start starts QEMU, which ends with the test, and with this process however that
// ends. ended yields QEMU's end.
func start(t testing.TB, cmd *exec.Cmd) (ended <-chan error) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	started, end := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the kernel sends Pdeathsig when the thread ends that started the child
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			end <- fmt.Errorf("QEMU has ended: %v\n%s", cmd.Wait(), &output)
		}
		close(end)
	}()
	if err := <-started; err != nil {
		t.Fatalf("starting QEMU: %v", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() // fails only if it has ended
		for range end {
		}
	})
	return end
}

// showConsole prints the end of what the guest has printed if the test failed.
func (m *Machine) showConsole(t testing.TB) {
	if !t.Failed() {
		return
	}
	console, err := os.ReadFile(m.console)
	t.Logf("the guest's console (%v):\n%s", err, lastLines(string(console), 30))
}

// showJournal prints the end of the services' logs if the test failed.
func (m *Machine) showJournal(t testing.TB) {
	if !t.Failed() {
		return
	}
	for _, service := range []string{"wasmproxy", "kubelet", "containerd"} {
		log, err := m.run("journalctl --no-pager --output=cat --lines=40 --unit=" + service)
		t.Logf("the log of %s (%v):\n%s", service, err, log)
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

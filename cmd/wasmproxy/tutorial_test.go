package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const tutorial = "../../docs/tutorial.md"

// roads are the languages in which the tutorial can be followed.
var roads = []string{"tinygo", "go", "rust", "c"}

// TestTutorial follows the tutorial as its readers do, in an empty directory, in each
// language, without a network. What stands after ``` says what a block is:
//
//	sh                    is pasted into the terminal
//	sh second             into a second terminal, opened where the first one is
//	text, text second     appears there then, line by line; … stands for anything
//	LANGUAGE FILE         is in the file, as it is now
//
// A block with the name of a road is for who takes that one.
func TestTutorial(t *testing.T) {
	blocks := readBlocks(t, tutorial)
	path := strings.Join([]string{program(t), toolchains(t), os.Getenv("PATH")}, ":")
	for _, road := range roads {
		t.Run(road, func(t *testing.T) {
			r := newReader(t, path)
			for _, b := range blocks {
				if b.isFor(road) {
					r.follow(t, b)
				}
			}
			r.interrupt(t)
			if r.pasted < 5 {
				t.Errorf("there were %d blocks to paste", r.pasted)
			}
		})
	}
}

// program builds the program as its users do, and returns its directory.
func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, "wasmproxy"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return dir
}

// toolchains returns the directories of the compilers. Without them the test fails.
func toolchains(t *testing.T) string {
	t.Helper()
	set := exec.CommandContext(t.Context(), "../../testdata/toolchain/toolchains.sh")
	set.Stderr = os.Stderr
	out, err := set.Output()
	if err != nil {
		t.Fatal("setting up the toolchains:", err)
	}
	return strings.TrimSpace(string(out))
}

// block is what stands between ``` and ```.
type block struct {
	language string
	words    []string // after the language
	text     string
}

var fenced = regexp.MustCompile("(?ms)^```(\\S+)(.*?)\n(.*?)^```$")

func readBlocks(t *testing.T, file string) (all []block) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fenced.FindAllStringSubmatch(string(text), -1) {
		all = append(all, block{m[1], strings.Fields(m[2]), m[3]})
	}
	return all
}

func (b block) has(word string) bool { return slices.Contains(b.words, word) }

func (b block) isFor(road string) bool {
	return b.has(road) || !slices.ContainsFunc(roads, b.has)
}

// reader has two terminals.
type reader struct {
	env    []string
	dir    string // where the first terminal is
	pasted int
	first  string // what the last block printed
	second *terminal
}

// newReader returns one without a network, and with nothing downloaded before. What
// the compilers have made of their own standard libraries stays.
func newReader(t *testing.T, path string) *reader {
	home := t.TempDir()
	return &reader{dir: t.TempDir(), env: append(os.Environ(),
		"PATH="+path, "GOPROXY=off", "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local", "GOWORK=off", "GOMODCACHE="+home+"/go", "CARGO_HOME="+home+"/cargo", "CARGO_NET_OFFLINE=true",
		"http_proxy=http://127.0.0.1:1", "https_proxy=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1")}
}

func (r *reader) follow(t *testing.T, b block) {
	t.Helper()
	switch {
	case b.language == "sh" && b.has("second"):
		r.second = open(t, r.dir, r.env, b.text)
	case b.language == "sh":
		r.paste(t, b.text)
	case b.language == "text" && b.has("second"):
		r.second.wait(t, b.text)
	case b.language == "text":
		if missing := missing(r.first, b.text); missing != "" {
			t.Errorf("the tutorial says that this is printed:\n%s\nbut it is\n%s", missing, r.first)
		}
	case len(b.words) > 0:
		r.compare(t, b)
	default:
		t.Errorf("a block in %s that nothing checks:\n%s", b.language, b.text)
	}
}

// paste runs the lines of a block where the block before ended.
func (r *reader) paste(t *testing.T, text string) {
	t.Helper()
	r.pasted++
	where := filepath.Join(t.TempDir(), "where")
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", text+"\npwd > "+where)
	cmd.Dir, cmd.Env = r.dir, r.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s%v\n%s", text, err, out)
	}
	now, err := os.ReadFile(where)
	if err != nil {
		t.Fatal(err)
	}
	r.dir, r.first = strings.TrimSpace(string(now)), string(out)
}

// compare looks for a block in the file whose name it ends with.
func (r *reader) compare(t *testing.T, b block) {
	t.Helper()
	file := b.words[len(b.words)-1]
	text, err := os.ReadFile(filepath.Join(r.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), b.text) {
		t.Errorf("%s does not have\n%s\nbut is\n%s", file, b.text, text)
	}
}

func (r *reader) interrupt(t *testing.T) {
	t.Helper()
	if r.second == nil {
		t.Fatal("there was nothing for a second terminal")
	}
	if err := r.second.interrupt(); err != nil {
		t.Errorf("after Ctrl-C: %v\n%s", err, r.second.screen())
	}
}

// missing is the first of the wanted lines that is not among the lines of a screen,
// after those before it.
func missing(screen, wanted string) string {
	lines := strings.Split(screen, "\n")
	for want := range strings.Lines(wanted) {
		if want = strings.TrimSpace(want); want == "…" { // lines, or none
			continue
		}
		like := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$")
		i := slices.IndexFunc(lines, func(line string) bool { return like.MatchString(strings.TrimSpace(line)) })
		if i < 0 {
			return want
		}
		lines = lines[i+1:]
	}
	return ""
}

// terminal runs something that does not end by itself.
type terminal struct {
	cmd   *exec.Cmd
	mu    sync.Mutex
	shown bytes.Buffer
	ended chan error
	done  bool
}

func open(t *testing.T, dir string, env []string, text string) *terminal {
	t.Helper()
	s := &terminal{cmd: exec.Command("bash", "-e", "-c", text), ended: make(chan error, 1)}
	s.cmd.Dir, s.cmd.Env = dir, env
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Stdout, s.cmd.Stderr = s, s
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(func() { _ = s.interrupt() })
	return s
}

func (s *terminal) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.Write(b)
}

func (s *terminal) screen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// wait waits until the lines are on the screen.
func (s *terminal) wait(t *testing.T, lines string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); missing(s.screen(), lines) != ""; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the second terminal does not show\n%s\nbut\n%s", missing(s.screen(), lines), s.screen())
		}
	}
}

// interrupt is Ctrl-C: the signal goes to all that the terminal runs.
func (s *terminal) interrupt() error {
	if s.done {
		return nil
	}
	s.done = true
	if err := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGINT); err != nil {
		return err
	}
	select {
	case err := <-s.ended:
		return err
	case <-time.After(time.Minute):
		return errors.Join(errors.New("it does not end"), syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL))
	}
}

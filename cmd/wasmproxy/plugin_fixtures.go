package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// tester runs plugins on fixtures.
type tester struct {
	engine  *wasm.Engine
	maxFuel int64
	update  bool
}

// testHelp is the long help of plugin test.
const testHelp = `DIR holds X.wasm; its fixtures are the .json files of DIR/testdata, or of DIR if there is
no testdata. A FILE is one file of fixtures; its plugin is in its folder, or in the one
above. Without arguments DIR is the current one.
For each case the plugin is loaded anew, in the proxy's own engine, and the CRI call of the
case goes through the proxy's own code. The format is in testdata/abi/README.md of wasmproxy;
its key want says what the answer must be. A case that cannot be read or run fails, and the
others run. The output and the report show what a fixture
holds, environment included: put no secret there.`

func testCommand() *cobra.Command {
	var t tester
	var module, junit string
	cmd := &cobra.Command{
		Use:   "test [DIR|FILE]...",
		Short: "Run a plugin on fixtures and compare its answers with those that they expect",
		Long:  testHelp,
		Example: `  wasmproxy plugin test
  wasmproxy plugin test --wasm build/x.wasm fixtures
  wasmproxy plugin test --update           # write the answers into the fixtures
  wasmproxy plugin test --max-fuel 50000 --junit report.xml`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if t.maxFuel < 0 {
				return wrongUsage("--max-fuel: must not be negative, got %d", t.maxFuel)
			}
			if len(args) == 0 {
				args = []string{"."}
			}
			var files []fixtureFile
			for _, path := range args {
				found, err := fixtureFiles(path)
				if err != nil {
					return err
				}
				p, err := findPlugin(module, path)
				if err != nil {
					return err
				}
				for _, file := range found {
					files = append(files, fixtureFile{file, p})
				}
			}
			if t.engine, err = wasm.NewEngine(cmd.Context(), wasm.Options{}); err != nil {
				return err
			}
			defer t.engine.Close(cmd.Context())

			var suites []suite
			failed, cases := 0, 0
			for _, file := range files {
				s, err := t.test(cmd, file)
				if err != nil {
					return err
				}
				suites = append(suites, s)
				failed, cases = failed+s.Failures, cases+len(s.Cases)
			}
			if junit != "" {
				if err := writeJUnit(junit, suites); err != nil {
					return err
				}
			}
			unchanged := ""
			if t.update {
				unchanged = "; their files were not updated"
			}
			if failed > 0 {
				return fmt.Errorf("%d of %s failed%s", failed, number(cases, "case"), unchanged)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s passed\n", number(cases, "case"))
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&module, "wasm", "", "the plugin (default: the only .wasm file of DIR)")
	flags.BoolVar(&t.update, "update", false, "write what the plugin answers into the fixtures as what they want")
	flags.Int64Var(&t.maxFuel, "max-fuel", 0, "the most fuel that a case may use, unless it sets max_fuel itself")
	flags.StringVar(&junit, "junit", "", "file for a report in JUnit's XML")
	return cmd
}

// fixtureFile is a file of fixtures and the plugin that they are for.
type fixtureFile struct {
	path   string
	plugin pluginFile
}

// findPlugin returns the module of --wasm, or the only one where the fixtures are or above.
func findPlugin(module, dir string) (pluginFile, error) {
	if module != "" {
		return readPlugin(module)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	for _, at := range []string{dir, filepath.Join(dir, "..")} {
		found, err := filesIn(at, "*.wasm")
		switch {
		case err != nil:
			return pluginFile{}, err
		case len(found) == 1:
			return readPlugin(found[0])
		case len(found) > 1:
			return pluginFile{}, wrongUsage("%s has more than one plugin: %s; name one with --wasm", at, strings.Join(found, ", "))
		}
	}
	return pluginFile{}, fmt.Errorf("%s has no .wasm file; build it, or name one with --wasm", dir)
}

// fixtureFiles lists the files of fixtures that an argument names.
func fixtureFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("looking for fixtures: %w", err)
	}
	if !info.IsDir() && filepath.Ext(path) == ".wasm" {
		return nil, wrongUsage("%s is a plugin: name its folder, or its fixtures with --wasm %[1]s", path)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	if below, err := os.Stat(filepath.Join(path, "testdata")); err == nil && below.IsDir() {
		path = filepath.Join(path, "testdata")
	}
	found, err := filesIn(path, "*.json")
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s has no .json file", path)
	}
	return found, err
}

// filesIn returns the files of a directory, which may have any name, that match a pattern.
func filesIn(dir, pattern string) (paths []string, err error) {
	names, err := fs.Glob(os.DirFS(dir), pattern)
	for _, name := range names {
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths, err
}

// maxFixtures is the most that is read of a file of fixtures, in bytes.
const maxFixtures = 16 << 20

// test runs one file. A case that cannot be read or run fails like one with a wrong answer, and the others run. The error is
// one that ends the command.
func (t *tester) test(cmd *cobra.Command, f fixtureFile) (suite, error) {
	s := suite{Name: f.path}
	text, err := regular.Read(f.path, maxFixtures, nil)
	var all []fixture.Case
	if err == nil {
		all, err = fixture.Parse(f.path, text)
	}
	for _, wrong := range joined(err) {
		what := "reading the file"
		if in := new(fixture.CaseError); errors.As(wrong, &in) {
			what, wrong = "reading "+in.Title(), in.Err
		}
		if err := s.report(cmd.OutOrStdout(), what, "", 0, wrong); err != nil {
			return s, err
		}
	}
	answers := make([]fixture.Answer, len(all))
	for i, c := range all {
		start := time.Now()
		a, failure := simulate.RunCase(cmd.Context(), c, f.plugin.loader(cmd.Context(), t.engine))
		if err := cmd.Context().Err(); err != nil {
			return s, err
		}
		played, fuel := failure == nil, ""
		if played {
			answers[i], fuel = a, fmt.Sprintf(" (%d fuel)", a.Fuel)
		}
		if played && !t.update {
			failure = c.Want.Compare(a)
			if limited := c.Want != nil && c.Want.MaxFuel > 0; t.maxFuel > 0 && !limited {
				failure = errors.Join(failure, fixture.CheckFuel(a.Fuel, t.maxFuel))
			}
		}
		if err := s.report(cmd.OutOrStdout(), c.Name, fuel, time.Since(start), failure); err != nil {
			return s, err
		}
	}
	if t.update && s.Failures == 0 {
		return s, updateFixtures(f.path, all, answers)
	}
	return s, nil
}

// report adds what came of a case to the suite, and prints it.
func (s *suite) report(out io.Writer, name, fuel string, took time.Duration, failure error) error {
	s.add(name, took, failure)
	state, why := "ok   ", ""
	if failure != nil {
		state, why = "FAIL ", "      "+indented("      ", strings.Split(failure.Error(), "\n"))+"\n"
	}
	_, err := fmt.Fprintf(out, "%s %s: %s%s\n%s", state, plugin.Name(s.Name), printable(name), fuel, why)
	return err
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/recording"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// replayHelp is the long help of plugin replay.
const replayHelp = `Each call is played with the answers that the recorded plugin got. They are found by the question
and not by the order, so that a version may ask in another order. A call is

  same       it wants what the recorded version wanted; both may have failed
  different  it wants something else: a table shows target, was and is
  failed     it failed, and the recorded version did not
  unknown    it asked what the recording does not answer, or what was hidden

The plugin has the configuration and capabilities of the recording, unless --config and --grant say
otherwise. Limits and timeout are those of X.json beside X.wasm. Nothing runs, and no cgroup is touched.
Values of environment variables are not compared.

Exit codes: 0 all calls are the same, 1 at least one is not, 2 wrong usage.`

// replayer is a command.
type replayer struct {
	config, format, junit, fixtures string
	grant                           []string
}

func replayCommand() *cobra.Command {
	var r replayer
	cmd := &cobra.Command{
		Use:   "replay RECORDING X.wasm",
		Short: "Play a recording to another version of the plugin, and show what it would do otherwise",
		Long:  replayHelp,
		Example: `  wasmproxy plugin replay rec.jsonl new.wasm
  wasmproxy plugin replay rec.jsonl new.wasm --config new.json --junit report.xml
  wasmproxy plugin replay rec.jsonl new.wasm --fixtures testdata    # for plugin test`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0], args[1]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&r.config, "config", "", pluginConfig+" (default: that of the recording)")
	flags.StringSliceVar(&r.grant, "grant", nil, "capabilities beside those of the recording, such as env,store.read; * is all")
	flags.StringVar(&r.junit, "junit", "", "file for a report in JUnit's XML")
	flags.StringVar(&r.fixtures, "fixtures", "", "directory for a file of fixtures that are made of the recording, for plugin test")
	outputFlag(cmd, &r.format)
	return cmd
}

func (r *replayer) run(cmd *cobra.Command, file, module string) error {
	ctx, fixtures := cmd.Context(), filepath.Join(r.fixtures, stem(file)+".json")
	if _, err := os.Lstat(fixtures); r.fixtures != "" && err == nil { // somebody may have written it
		return fmt.Errorf("--fixtures: %s is there already: remove it, or name another directory", fixtures)
	}
	rec, err := readRecording(ctx, file)
	if err != nil {
		return err
	}
	p, err := readPlugin(module)
	if err != nil {
		return err
	}
	p.beside.ID = rec.Plugin // from which its random numbers follow
	options := simulate.ReplayOptions{}
	if options.Grant, err = grants(r.grant); err != nil {
		return err
	}
	if options.Config, err = compactFile(ctx, r.config); err != nil {
		return err
	}
	engine, err := wasm.NewEngine(ctx, wasm.Options{})
	if err != nil {
		return err
	}
	defer engine.Close(ctx)
	options.Load = p.loader(ctx, engine)
	report, err := playAll(cmd, rec, options)
	if err != nil {
		return err
	}
	report.Recording, report.Module = file, module
	if r.fixtures != "" {
		if err := r.writeFixtures(&report, fixtures, rec); err != nil {
			return err
		}
	}
	if r.junit != "" {
		if err := writeJUnit(r.junit, []suite{report.suite()}); err != nil {
			return err
		}
	}
	write := report.print
	if r.format == "json" {
		write = func(out io.Writer) error { return encode(out, report) }
	}
	err = write(cmd.OutOrStdout())
	if len(report.Calls) == 0 {
		return errors.Join(err, errors.New("the recording has no call"))
	}
	if n := len(report.Calls) - report.Outcomes[simulate.Same]; n > 0 {
		return errors.Join(err, fmt.Errorf("%d of %d calls are not the same", n, len(report.Calls)))
	}
	return err
}

// readRecording reads a file of any length that a recording may have.
func readRecording(ctx context.Context, file string) (*recording.Recording, error) {
	return untilDone(ctx, file, func() (*recording.Recording, error) {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("reading the recording: %w", err)
		}
		defer f.Close()
		rec, err := recording.Read(f)
		if err != nil {
			err = fmt.Errorf("%s: %w", file, err)
		}
		return rec, err
	})
}

// compactFile reads a configuration as the proxy passes it on; "" if there is no file.
func compactFile(ctx context.Context, file string) (string, error) {
	if file == "" {
		return "", nil
	}
	b, err := readInput(ctx, file)
	if err != nil {
		return "", fmt.Errorf("--config: %w", err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, b); err != nil {
		return "", fmt.Errorf("--config %s: is not JSON: %w", file, err)
	}
	return compact.String(), nil
}

// playAll plays all calls, and reports on them. On a terminal it shows how many it has played.
func playAll(cmd *cobra.Command, rec *recording.Recording, o simulate.ReplayOptions) (report replayReport, err error) {
	s, err := simulate.OpenReplay(&rec.Header, o)
	if err != nil {
		return report, err
	}
	defer s.Close(context.WithoutCancel(cmd.Context()))
	bar, shown := io.Discard, time.Time{}
	if out := cmd.ErrOrStderr(); isTerminal(out) {
		bar = out
	}
	defer fmt.Fprint(bar, "\r\x1b[K") // takes it away
	report = replayReport{
		Recorded: strings.TrimSpace(rec.Plugin + " " + rec.Release), Calls: []simulate.Played{},
		Outcomes: map[simulate.Outcome]int{simulate.Same: 0, simulate.Different: 0, simulate.Failed: 0, simulate.Unknown: 0},
	}
	for i := range rec.Calls {
		c, err := s.Play(cmd.Context(), &rec.Calls[i])
		if err != nil {
			return report, err
		}
		report.Calls = append(report.Calls, c)
		report.Outcomes[c.Outcome]++
		report.Fuel.Was, report.Fuel.Is = report.Fuel.Was+c.WasFuel, report.Fuel.Is+c.Fuel
		report.Took.Was, report.Took.Is = report.Took.Was+int64(c.WasTook), report.Took.Is+int64(c.Took)
		if time.Since(shown) >= 100*time.Millisecond {
			const width = 40
			shown = time.Now()
			n := width * (i + 1) / len(rec.Calls)
			fmt.Fprintf(bar, "\r[%s%s] %d of %d calls", strings.Repeat("#", n), strings.Repeat(" ", width-n), i+1, len(rec.Calls))
		}
	}
	if n := int64(len(report.Calls)); n > 0 {
		report.Fuel = average{report.Fuel.Was / n, report.Fuel.Is / n}
		report.Took = average{report.Took.Was / n, report.Took.Is / n}
	}
	report.Notes = list(s.Notes())
	switch {
	case rec.End == nil:
		report.Notes = append(report.Notes, "the recording has no last line: it was cut")
	case rec.End.Dropped.All() > 0:
		report.Notes = append(report.Notes, fmt.Sprintf("the recording has not all calls: %d were left out", rec.End.Dropped.All()))
	}
	return report, nil
}

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/recording"
)

// recordHelp is the long help of plugin record.
const recordHelp = `The recording goes to stdout: a line of JSON for each call of the plugin. wasmproxy plugin replay
plays it to another version of the plugin. docs/changing-plugins.md has the format.

It ends with the command, after --for, after --max bytes, when another version replaces the plugin,
or when the proxy stops. It leaves nothing switched on. Calls never wait for it: what exceeds --rate
or --max-call, or what the reader does not take in time, is left out and counted.

Values of environment variables, registry credentials and whole requests are left out, and what is
known as a secret is (hidden). The configuration of the plugin is in the first line as it is. A
hook server cannot be recorded.

The socket is found as serve finds it: by --admin-socket, WASMPROXY_ADMIN_SOCKET or the file of
--config. It belongs to the proxy's user, usually root.`

func recordCommand() *cobra.Command {
	o := recording.DefaultOptions()
	most, call := "16Mi", "64Ki"
	cmd := &cobra.Command{
		Use:   "record ID",
		Short: "Record what a plugin of the running proxy asks, and what it is answered",
		Long:  recordHelp,
		Example: `  wasmproxy plugin record 50-qos > rec.jsonl
  wasmproxy plugin record 50-memory-qos --ticks --for 1h --max 64Mi > rec.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.Max, err = bytesOf("--max", most); err != nil {
				return err
			}
			if o.Call, err = bytesOf("--max-call", call); err != nil {
				return err
			}
			if err := o.Check(); err != nil {
				return coded{err, exitUsage}
			}
			client, err := adminClient(cmd)
			if err != nil {
				return err
			}
			return record(cmd, client, args[0], o)
		},
	}
	adminFlags(cmd, "for", "max", "rate", "max-call", "env", "ticks")
	flags := cmd.Flags()
	flags.DurationVar(&o.For, "for", o.For, "how long to record")
	flags.StringVar(&most, "max", most, "the most bytes of the recording, such as 64Mi")
	flags.IntVar(&o.Rate, "rate", o.Rate, "the most calls that are recorded in a second")
	flags.StringVar(&call, "max-call", call, "the most bytes that are recorded of a call, such as 256Ki")
	flags.BoolVar(&o.Env, "env", o.Env, "record the names of environment variables")
	flags.BoolVar(&o.Ticks, "ticks", o.Ticks, "record Tick and Synchronize")
	return cmd
}

// bytesOf reads a size, such as 16Mi.
func bytesOf(flag, text string) (int64, error) {
	for unit, factor := range map[string]int64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30} {
		digits, ok := strings.CutSuffix(text, unit)
		if n, err := strconv.ParseInt(digits, 10, 32); ok && err == nil {
			return n * factor, nil
		}
	}
	return 0, wrongUsage("%s: must be a size such as 64Ki or 16Mi, got %q", flag, text)
}

// record copies the lines to stdout, and counts the calls. If it is interrupted it writes the last line itself.
func record(cmd *cobra.Command, c admin.Client, id string, o recording.Options) error {
	lines, err := c.Record(cmd.Context(), id, o)
	if err != nil {
		return fmt.Errorf("recording plugin %s: %w", printable(id), err)
	}
	defer lines.Close()
	var end recording.End
	for r := bufio.NewReader(lines); end.Reason == ""; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the connection to the proxy ended")
		}
		if err != nil && cmd.Context().Err() == nil {
			return fmt.Errorf("%w after %d calls; what was written can be replayed", err, end.Calls)
		}
		var l struct {
			recording.End
			Hook string `json:"hook"`
		}
		switch {
		case err != nil: // the command is the one that ends
			end.Reason = recording.EndInterrupted
			line, _ = json.Marshal(end) // of texts and numbers: it cannot fail
			line = append(line, '\n')
		case json.Unmarshal(line, &l) != nil:
		case l.Reason != "":
			end = l.End
		case l.Hook != "":
			end.Calls++
			end.Dropped = l.Dropped
		}
		if _, err := cmd.OutOrStdout().Write(line); err != nil {
			return fmt.Errorf("writing the recording: %w", err)
		}
	}

	why := map[string]string{
		recording.EndTime: "the time of --for is over", recording.EndBytes: "it has the bytes of --max",
		recording.EndClosed:  "another version replaced the plugin, or its files have gone",
		recording.EndStopped: "the proxy stopped", recording.EndInterrupted: "it was interrupted",
	}[end.Reason]
	text := fmt.Sprintf("%d calls recorded: %s", end.Calls, why)
	if d := end.Dropped; d.All() > 0 {
		text += fmt.Sprintf("; %d calls left out: %d exceeded --rate, %d exceeded --max-call, the reader was too slow for %d", d.All(), d.Rate, d.Size, d.Reader)
	}
	_, err = fmt.Fprintln(cmd.ErrOrStderr(), text)
	return err
}

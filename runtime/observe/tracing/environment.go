package tracing

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// samplers are the values of OTEL_TRACES_SAMPLER.
var samplers = []string{"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"}

// wanted reports whether the environment asks for traces. The error says which variable is
// wrong. It quotes no header, which may hold a secret.
//
// The SDK reads the variables by itself. It writes those that it cannot read to stderr, headers
// too, and goes on; so they are checked before.
func wanted() (bool, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	endpoint := os.Getenv(set("ENDPOINT"))
	switch e := os.Getenv("OTEL_TRACES_EXPORTER"); {
	case e == "none", e == "" && endpoint == "":
		return false, nil
	case e != "" && e != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER: %q is neither otlp nor none", e)
	}
	_, badSampler := sampler()
	return true, errors.Join(checkEndpoint(endpoint), checkProtocol(), checkHeaders(), checkFiles(), badSampler)
}

// set returns the name of an exporter's variable: that for traces, if it is set.
func set(variable string) string {
	if name := "OTEL_EXPORTER_OTLP_TRACES_" + variable; os.Getenv(name) != "" {
		return name
	}
	return "OTEL_EXPORTER_OTLP_" + variable
}

func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	known := err == nil && (u.Scheme == "http" || u.Scheme == "https")
	if !known || u.Host == "" {
		return fmt.Errorf("%s: the value is not a URL such as http://localhost:4317", set("ENDPOINT"))
	}
	return nil
}

func checkProtocol() error {
	name := set("PROTOCOL")
	if p := os.Getenv(name); p != "" && p != "grpc" {
		return fmt.Errorf("%s: the protocol %q is not supported; set it to grpc", name, p)
	}
	return nil
}

func checkHeaders() error {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		headers := os.Getenv(name)
		if headers == "" {
			continue
		}
		for i, header := range strings.Split(headers, ",") {
			key, value, ok := strings.Cut(header, "=")
			key = strings.TrimSpace(key)
			_, err := url.PathUnescape(value)
			if named := key != "" && strings.Trim(key, headerKey) == ""; !ok || !named || err != nil {
				return fmt.Errorf("%s: header %d of the list is not key=value with a value as in a URL", name, i+1)
			}
		}
	}
	return nil
}

// headerKey are the characters of a header's name.
const headerKey = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

func checkFiles() error {
	for _, variable := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
		name := set(variable)
		if file := os.Getenv(name); file != "" {
			if _, err := os.ReadFile(file); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// sampler returns the sampler that the environment names. The SDK does not tell which one it has
// made of the same variables.
func sampler() (sdktrace.Sampler, error) {
	wanted := cmp.Or(strings.ToLower(os.Getenv("OTEL_TRACES_SAMPLER")), "parentbased_always_on")
	name, ofParent := strings.CutPrefix(wanted, "parentbased_")
	var root sdktrace.Sampler
	switch name {
	case "always_on":
		root = sdktrace.AlwaysSample()
	case "always_off":
		root = sdktrace.NeverSample()
	case "traceidratio":
		ratio, err := ratio()
		if err != nil {
			return nil, err
		}
		root = sdktrace.TraceIDRatioBased(ratio)
	default:
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER: %q is not one of %s", wanted, strings.Join(samplers, ", "))
	}
	if ofParent {
		return sdktrace.ParentBased(root), nil
	}
	return root, nil
}

// ratio returns the part of traces that are sampled: all, unless the variable says otherwise.
func ratio() (float64, error) {
	const name = "OTEL_TRACES_SAMPLER_ARG"
	arg := strings.TrimSpace(os.Getenv(name))
	if arg == "" {
		return 1, nil
	}
	ratio, err := strconv.ParseFloat(arg, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return 0, fmt.Errorf("%s: %q is not a number from 0 to 1", name, arg)
	}
	return ratio, nil
}

// queueLength is how many spans may wait to be made and sent.
func queueLength() int {
	if n, err := strconv.Atoi(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		return n
	}
	return sdktrace.DefaultMaxQueueSize
}

package tracing

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// samplers are the values of OTEL_TRACES_SAMPLER.
var samplers = []string{"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"}

// wanted reports whether the environment asks for traces. The error says which variable is
// wrong. It quotes no header, which may hold a secret.
//
// The SDK reads the variables by itself. It goes on without those that it cannot read, which it
// writes to stderr, headers too, or tells nobody of, or it panics; so they are checked before.
func wanted() (bool, error) {
	if strings.EqualFold(strings.TrimSpace(os.Getenv("OTEL_SDK_DISABLED")), "true") {
		return false, nil
	}
	endpoint := os.Getenv(set("ENDPOINT"))
	switch e := os.Getenv("OTEL_TRACES_EXPORTER"); {
	case e == "none", e == "" && endpoint == "":
		return false, nil
	case e != "" && e != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER: %q is neither otlp nor none", e)
	}
	return true, errors.Join(checkExporter(), checkCertificates(), checkHeaders(), checkSampler(), checkWords(), checkNumbers())
}

// set returns the name of an exporter's variable: that for traces, if it is set.
func set(variable string) string {
	if name := "OTEL_EXPORTER_OTLP_TRACES_" + variable; os.Getenv(name) != "" {
		return name
	}
	return "OTEL_EXPORTER_OTLP_" + variable
}

// both are the names of an exporter's variable: the SDK reads that for all signals also if that for traces is set.
func both(variable string) []string {
	return []string{"OTEL_EXPORTER_OTLP_" + variable, "OTEL_EXPORTER_OTLP_TRACES_" + variable}
}

func checkExporter() (err error) {
	for _, name := range both("ENDPOINT") {
		endpoint := os.Getenv(name)
		if endpoint == "" {
			continue
		}
		u, bad := url.Parse(endpoint)
		known := bad == nil && (u.Scheme == "http" || u.Scheme == "https")
		if !known || u.Host == "" {
			err = errors.Join(err, fmt.Errorf("%s: the value is not a URL such as http://localhost:4317", name))
		}
	}
	if p := os.Getenv(set("PROTOCOL")); p != "" && p != "grpc" {
		err = errors.Join(err, fmt.Errorf("%s: the protocol %q is not supported; set it to grpc", set("PROTOCOL"), p))
	}
	return err
}

// checkCertificates reads the files as the SDK does, which goes on without those that it cannot use.
func checkCertificates() error {
	for _, name := range both("CERTIFICATE") {
		if file := os.Getenv(name); file != "" {
			text, err := os.ReadFile(file)
			if err == nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
				err = errors.New("there is no certificate in the file")
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	keys := both("CLIENT_KEY")
	for i, name := range both("CLIENT_CERTIFICATE") {
		certificate, key := os.Getenv(name), os.Getenv(keys[i])
		if certificate+key == "" {
			continue
		}
		if _, err := tls.LoadX509KeyPair(certificate, key); err != nil {
			return fmt.Errorf("%s and %s: %w", name, keys[i], err)
		}
	}
	return nil
}

func checkHeaders() error {
	for _, name := range both("HEADERS") {
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

func checkSampler() error {
	name := cmp.Or(strings.ToLower(strings.TrimSpace(os.Getenv("OTEL_TRACES_SAMPLER"))), "parentbased_always_on")
	if !slices.Contains(samplers, name) {
		return fmt.Errorf("OTEL_TRACES_SAMPLER: %q is not one of %s", name, strings.Join(samplers, ", "))
	}
	arg := strings.TrimSpace(os.Getenv("OTEL_TRACES_SAMPLER_ARG"))
	if arg == "" || !strings.HasSuffix(name, "traceidratio") {
		return nil
	}
	if ratio, err := strconv.ParseFloat(arg, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
		return fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %q is not a number from 0 to 1", arg)
	}
	return nil
}

// checkWords checks variables of which the SDK knows some words, and takes any other for the last of them.
func checkWords() error {
	for _, name := range both("COMPRESSION") {
		if word := strings.TrimSpace(os.Getenv(name)); !slices.Contains([]string{"", "gzip", "none"}, word) {
			return fmt.Errorf("%s: %q is neither gzip nor none", name, word)
		}
	}
	for _, name := range append(both("INSECURE"), "OTEL_SDK_DISABLED") {
		if word := strings.TrimSpace(os.Getenv(name)); !slices.Contains([]string{"", "true", "false"}, strings.ToLower(word)) {
			return fmt.Errorf("%s: %q is neither true nor false", name, word)
		}
	}
	return nil
}

// maxNumber is the most that a variable may say: spans, or milliseconds.
const maxNumber = 1_000_000

func checkNumbers() error {
	batch := []string{"OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "OTEL_BSP_SCHEDULE_DELAY"}
	for _, name := range append(batch, both("TIMEOUT")...) {
		if value := os.Getenv(name); value != "" {
			if n, err := strconv.Atoi(value); err != nil || n < 1 || n > maxNumber {
				return fmt.Errorf("%s: %q is not a number from 1 to %d", name, value, maxNumber)
			}
		}
	}
	for _, name := range []string{
		"OTEL_BSP_EXPORT_TIMEOUT", "OTEL_ATTRIBUTE_COUNT_LIMIT", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
		"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
	} {
		if value := os.Getenv(name); value != "" {
			if _, err := strconv.Atoi(value); err != nil {
				return fmt.Errorf("%s: %q is not a number; -1 is no limit", name, value)
			}
		}
	}
	return nil
}

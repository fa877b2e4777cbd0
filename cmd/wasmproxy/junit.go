package main

import (
	"encoding/xml"
	"fmt"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// suite is a file of fixtures in a report of JUnit's, as CI systems read it:
// https://github.com/testmoapp/junitxml.
type suite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Time     string      `xml:"time,attr"` // seconds
	Cases    []suiteCase `xml:"testcase"`

	took time.Duration
}

type suiteCase struct {
	Name      string   `xml:"name,attr"`
	ClassName string   `xml:"classname,attr"`
	Time      string   `xml:"time,attr"`
	Failure   *failure `xml:"failure"`
}

type failure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func (s *suite) add(name string, took time.Duration, err error) {
	c := suiteCase{Name: name, ClassName: stem(s.Name), Time: seconds(took)}
	if err != nil {
		message, _, _ := strings.Cut(err.Error(), "\n")
		c.Failure = &failure{message, err.Error()}
		s.Failures++
	}
	s.Cases = append(s.Cases, c)
	s.Tests, s.took = s.Tests+1, s.took+took
	s.Time = seconds(s.took)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) }

func writeJUnit(path string, suites []suite) error {
	b, err := xml.MarshalIndent(struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []suite
	}{Suites: suites}, "", "  ")
	if err != nil {
		return err
	}
	if err := regular.Replace(path, append([]byte(xml.Header), append(b, '\n')...), 0o644); err != nil {
		return fmt.Errorf("writing the report %s of --junit: %w", path, regular.Cause(err))
	}
	return nil
}
